/* scene_canvas.js: a scene (scene.js) on a canvas. */

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

function path(g, at) {
    g.beginPath();
    g.moveTo(at[0], at[1]);
    for (let i = 2; i < at.length; i += 2) g.lineTo(at[i], at[i + 1]);
}

/** An image of rows × cols as a canvas, kept with its item: a scene is drawn many times. */
export function imageCanvas(item) {
    if (!item.made) {
        item.made = document.createElement("canvas");
        item.made.width = item.cols;
        item.made.height = item.rows;
        item.made.getContext("2d").putImageData(new ImageData(item.rgba, item.cols, item.rows), 0, 0);
    }
    return item.made;
}

const draw = {
    rect(g, i, colour) {
        g.fillStyle = colour(i.fill);
        g.fillRect(i.x, i.y, i.w, i.h);
    },
    line(g, i, colour) {
        path(g, i.at);
        g.strokeStyle = colour(i.stroke);
        g.lineWidth = i.width ?? 1;
        g.setLineDash(i.dash ?? []);
        g.stroke();
    },
    area(g, i, colour) {
        path(g, i.at);
        g.closePath();
        g.fillStyle = colour(i.fill);
        g.fill();
    },
    dot(g, i, colour) {
        g.beginPath();
        g.arc(i.x, i.y, i.r, 0, 2 * Math.PI);
        if (i.fill) {
            g.fillStyle = colour(i.fill);
            g.fill();
        }
        if (i.stroke) {
            g.setLineDash([]);
            g.strokeStyle = colour(i.stroke);
            g.lineWidth = i.width ?? 1;
            g.stroke();
        }
    },
    text(g, i, colour) {
        g.save();
        g.translate(i.x, i.y);
        g.rotate(((i.turn ?? 0) * Math.PI) / 180);
        g.font = `${i.weight ?? 400} ${i.size}px ${FONT}`;
        g.textAlign = {start: "left", middle: "center", end: "right"}[i.anchor ?? "start"];
        g.fillStyle = colour(i.fill);
        g.fillText(i.text, 0, 0);
        g.restore();
    },
    image(g, i) {
        g.imageSmoothingEnabled = i.smooth ?? false;
        g.drawImage(imageCanvas(i), i.x, i.y, i.w, i.h);
    },
    clip(g, i, colour) {
        g.save();
        g.beginPath();
        g.rect(i.x, i.y, i.w, i.h);
        g.clip();
        drawItems(g, i.items, colour);
        g.restore();
    },
};

function drawItems(g, items, colour) {
    for (const item of items) {
        g.globalAlpha = item.alpha ?? 1;
        draw[item.k](g, item, colour);
        g.globalAlpha = 1;
    }
}

/**
 * @param {HTMLCanvasElement} canvas sized here  @param {object[]} items
 * @param {(name: string) => string} colour of the palette  @param {number} ratio pixels per CSS pixel
 */
export function drawScene(canvas, items, width, height, colour, ratio) {
    const w = Math.round(width * ratio), h = Math.round(height * ratio);
    if (canvas.width !== w || canvas.height !== h) {
        canvas.width = w;
        canvas.height = h;
    }
    const g = canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.lineJoin = "round";
    g.lineCap = "round";
    g.fillStyle = colour("paper");
    g.fillRect(0, 0, width, height);
    drawItems(g, items, colour);
}
