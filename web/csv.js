/* csv.js: a person's points from a CSV file, and tables as CSV. */

/** The fields of one line; quotes as in RFC 4180, without line breaks inside them. */
export function fields(line, comma = ",") {
    const out = [];
    let text = "", quoted = false;
    for (let i = 0; i < line.length; i++) {
        const c = line[i];
        if (quoted) {
            if (c === '"' && line[i + 1] === '"') text += line[++i];
            else if (c === '"') quoted = false;
            else text += c;
        } else if (c === '"') quoted = true;
        else if (c === comma) {
            out.push(text.trim());
            text = "";
        } else text += c;
    }
    out.push(text.trim());
    return out;
}

function number(text, line, column, decimal) {
    const value = Number(decimal === "," ? text.replace(",", ".") : text);
    if (text === "" || !Number.isFinite(value)) throw new Error(`Line ${line}: "${text.slice(0, 40)}" in column ${column} is not a number.`);
    return value;
}

/**
 * Columns of a table by their names. Rows with an empty field in one of them are left out, as the
 * command does.
 * @param {string} text of a file  @param {string[]} names wanted, in their order
 * @param {number} most rows
 * @returns {number[][]} rows of numbers, in the order of names; throws an Error with one sentence
 */
export function readColumns(text, names, most = 2000) {
    const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
    const start = lines.findIndex((l) => l.trim() !== "");
    if (start < 0) throw new Error("The file is empty.");
    const semi = lines[start].includes(";");
    const comma = semi ? ";" : lines[start].includes("\t") ? "\t" : ",";
    const header = fields(lines[start], comma);
    const columns = names.map((wanted) => header.findIndex((h) => h.toLowerCase() === wanted.toLowerCase()));
    const missing = columns.findIndex((c) => c < 0);
    if (missing >= 0)
        throw new Error(`The file has no column "${names[missing]}": its first line should name the columns ${names.join(" and ")}.`);
    const rows = [];
    for (let i = start + 1; i < lines.length; i++) {
        if (lines[i].trim() === "") continue;
        const row = fields(lines[i], comma);
        if (columns.some((c) => row[c] === "" || row[c] === undefined)) continue;
        rows.push(columns.map((c, k) => number(row[c], i + 1, names[k], semi ? "," : ".")));
        if (rows.length > most) throw new Error(`The file has more than ${most} rows; the page takes at most ${most}.`);
    }
    if (!rows.length) throw new Error("The file has a header but no rows with numbers.");
    return rows;
}

/** A table as CSV. @param {string[]} header @param {number[][]} columns */
export function toCsv(header, columns) {
    const rows = columns[0].map((_, i) => columns.map((c) => String(c[i])).join(","));
    return `${header.join(",")}\n${rows.join("\n")}\n`;
}
