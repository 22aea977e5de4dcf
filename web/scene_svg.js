/* scene_svg.js: a scene (scene.js) as the text of an SVG file. */

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";

/** Text that is safe inside XML. */
export function escapeXml(text) {
    const names = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"};
    return String(text).replace(/[&<>"']/g, (c) => names[c]);
}

const n = (v) => String(Math.round(v * 100) / 100);

function points(at) {
    let out = `M${n(at[0])} ${n(at[1])}`;
    for (let i = 2; i < at.length; i += 2) out += `L${n(at[i])} ${n(at[i + 1])}`;
    return out;
}

/**
 * @param {object[]} items @param {(name: string) => string} colour
 * @param {(item: object) => string} [imageUrl] the data: address of an image item
 */
export function sceneToSvg(items, width, height, colour, imageUrl = () => "") {
    let clips = 0;
    const alpha = (i) => (i.alpha === undefined || i.alpha === 1 ? "" : ` opacity="${n(i.alpha)}"`);
    const stroke = (i) => ` stroke="${colour(i.stroke)}" stroke-width="${n(i.width ?? 1)}"`;
    const make = {
        rect: (i) => `<rect x="${n(i.x)}" y="${n(i.y)}" width="${n(i.w)}" height="${n(i.h)}" fill="${colour(i.fill)}"${alpha(i)}/>`,
        line: (i) => `<path d="${points(i.at)}" fill="none"${stroke(i)}${i.dash?.length ? ` stroke-dasharray="${i.dash.map(n).join(" ")}"` : ""}${alpha(i)}/>`,
        area: (i) => `<path d="${points(i.at)}Z" fill="${colour(i.fill)}"${alpha(i)}/>`,
        dot: (i) => `<circle cx="${n(i.x)}" cy="${n(i.y)}" r="${n(i.r)}" fill="${i.fill ? colour(i.fill) : "none"}"${i.stroke ? stroke(i) : ""}${alpha(i)}/>`,
        text: (i) => `<text x="${n(i.x)}" y="${n(i.y)}" font-size="${n(i.size)}" fill="${colour(i.fill)}" text-anchor="${i.anchor ?? "start"}"` +
            `${i.weight ? ` font-weight="${i.weight}"` : ""}${i.turn ? ` transform="rotate(${n(i.turn)} ${n(i.x)} ${n(i.y)})"` : ""}${alpha(i)}>${escapeXml(i.text)}</text>`,
        image: (i) => `<image x="${n(i.x)}" y="${n(i.y)}" width="${n(i.w)}" height="${n(i.h)}" preserveAspectRatio="none"` +
            `${i.smooth ? "" : ' style="image-rendering:pixelated"'} href="${escapeXml(imageUrl(i))}"${alpha(i)}/>`,
        clip: (i) => {
            const id = `clip${++clips}`;
            return `<clipPath id="${id}"><rect x="${n(i.x)}" y="${n(i.y)}" width="${n(i.w)}" height="${n(i.h)}"/></clipPath>` +
                `<g clip-path="url(#${id})">${i.items.map((c) => make[c.k](c)).join("\n")}</g>`;
        },
    };
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${n(width)}" height="${n(height)}" viewBox="0 0 ${n(width)} ${n(height)}" ` +
        `font-family="${FONT}" stroke-linejoin="round" stroke-linecap="round">\n` +
        `<rect width="100%" height="100%" fill="${colour("paper")}"/>\n${items.map((i) => make[i.k](i)).join("\n")}\n</svg>\n`;
}
