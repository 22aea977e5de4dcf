/* check.mjs: the JavaScript side of tests/check.h. A test file calls
 *
 *     await run("name", async () => { ... })    passes when it throws nothing
 *     near(got, want, tolerance, what)          numbers, lists and objects of them
 *     done()                                    last: "N passed, N failed"
 *
 * T=text in the environment: only tests whose name holds the text. */
import assert from "node:assert/strict";

let passed = 0, failed = 0;

export async function run(name, test) {
    if (!name.includes(process.env.T ?? "")) return;
    try {
        await test();
        console.log(`ok   ${name}`);
        passed++;
    } catch (error) {
        console.log(`FAIL ${name}\n${error.stack ?? error}`);
        failed++;
    }
}

/** Equal in form; numbers within `tolerance` times the larger of 1 and the wanted one's size. */
export function near(got, want, tolerance, what = "reply") {
    if (typeof want === "number") {
        assert.equal(typeof got, "number", `${what} is ${got}, not a number`);
        const off = Math.abs(got - want) / Math.max(1, Math.abs(want));
        assert.ok(off <= tolerance, `${what} is ${got}, not ${want} (off by ${off.toExponential(1)})`);
    } else if (want !== null && typeof want === "object") {
        assert.deepEqual(Object.keys(got ?? {}), Object.keys(want), `the members of ${what}`);
        for (const key of Object.keys(want)) near(got[key], want[key], tolerance, `${what}.${key}`);
    } else {
        assert.equal(got, want, what);
    }
}

export function done() {
    console.log(`${passed} passed, ${failed} failed`);
    process.exitCode = failed ? 1 : 0;
}
