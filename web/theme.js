/* theme.js: light, dark, or as the system has it. */

const NAMES = ["auto", "light", "dark"];

function stored() {
    try {
        return localStorage.getItem("mnp-theme");
    } catch {
        return null;
    }
}

/** @param {HTMLSelectElement} select @param {() => void} changed redraws pictures */
export function startTheme(select, changed) {
    const apply = (name) => {
        if (name === "auto") delete document.documentElement.dataset.theme;
        else document.documentElement.dataset.theme = name;
        changed();
    };
    const first = NAMES.includes(stored()) ? stored() : "auto";
    select.value = first;
    apply(first);
    select.addEventListener("change", () => {
        try {
            localStorage.setItem("mnp-theme", select.value);
        } catch {
            /* not kept */
        }
        apply(select.value);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}
