/* host.js: what gives the page away: "server" is `mnp serve`; in the folder of `make wasm` this file
 * says "folder" (scripts/web_page.sh), and there is a WebAssembly module beside it. */
export const host = "server";
