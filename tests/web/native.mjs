/* native.mjs: the native twin of the module (native.c) as calls, one after the other. */
import {spawn} from "node:child_process";
import {createInterface} from "node:readline";

export class Native {
    constructor(program, models) {
        this.child = spawn(program, models, {stdio: ["pipe", "pipe", "inherit"]});
        this.waiting = [];
        createInterface({input: this.child.stdout}).on("line", (line) => this.waiting.shift()(line));
        this.child.on("exit", () => this.waiting.splice(0).forEach((take) => take("0 null")));
    }

    /** @returns {Promise<{status: number, reply: object}>} */
    async call(verb, request) {
        const line = await new Promise((take) => {
            this.waiting.push(take);
            this.child.stdin.write(`${verb} ${JSON.stringify(request)}\n`);
        });
        const space = line.indexOf(" ");
        return {status: Number(line.slice(0, space)), reply: JSON.parse(line.slice(space + 1))};
    }

    end() {
        this.child.stdin.end();
    }
}
