// Compares what pages show with golden pictures.
//
// Content that differs from run to run (times, ages, IDs, figures) is replaced before the
// picture is taken, and canvases are hidden unless their data come from the test. Pictures
// are compared by the mean brightness of blocks, so that another anti-aliasing does not count,
// but a missing column does. All use the fonts of fonts-dejavu-core; without them nothing is
// compared.
import { mkdir, readFile, writeFile } from "node:fs/promises";

const block = 16; // pixels
const tolerance = 18; // of the mean brightness of a block, of 255
const share = 0.006; // of blocks that may differ

export class Pictures {
  static async open(browser) {
    const lab = await (await browser.newContext({ viewport: { width: 200, height: 100 } })).newPage();
    const hasFonts = await lab.evaluate(() => {
      const c = document.createElement("canvas").getContext("2d");
      const width = (font) => ((c.font = `40px ${font}`), c.measureText("The quick brown fox 0123456789").width);
      return ["serif", "monospace"].every((other) => width(`"DejaVu Sans", ${other}`) === width('"DejaVu Sans"')) && width('"DejaVu Sans", monospace') !== width("monospace");
    });
    if (!hasFonts) console.log("# pictures are not compared: apt-get install fonts-dejavu-core");
    return new Pictures(lab, hasFonts);
  }

  constructor(lab, enabled) {
    this.lab = lab;
    this.enabled = enabled;
    this.rewrite = process.env.CEDE_PICTURES === "rewrite";
    this.folder = new URL("golden/", import.meta.url);
  }

  /** Compares the page with its golden picture, or replaces that one. */
  async check(name, page) {
    if (!this.enabled) return;
    const now = await this.take(page);
    const file = new URL(name + ".png", this.folder);
    if (this.rewrite) {
      await mkdir(this.folder, { recursive: true });
      await writeFile(file, now);
      return;
    }
    const golden = await readFile(file).catch(() => undefined);
    if (!golden) throw new Error(`test/golden/${name}.png is missing: play the stories with CEDE_PICTURES=rewrite`);
    const { changed, blocks } = await this.difference(golden, now);
    if (changed <= blocks * share) return;
    const actual = `${process.env.CEDE_SHOTS ?? process.env.TMPDIR ?? "/tmp"}/cede-picture-${name}.png`;
    await writeFile(actual, now);
    throw new Error(`the page differs from test/golden/${name}.png in ${changed} of ${blocks} blocks: see ${actual}; if that is intended, play the stories with CEDE_PICTURES=rewrite`);
  }

  /** Takes a picture with the same fonts and content in every run. */
  async take(page) {
    await page.evaluate(freeze);
    return page.screenshot({ animations: "disabled", caret: "hide", scale: "css" });
  }

  /** Counts the blocks that differ. Parts that only one picture has differ. */
  difference(a, b) {
    return this.lab.evaluate(compare, [a.toString("base64"), b.toString("base64"), block, tolerance]);
  }
}

/** Runs in the page. */
function freeze() {
  const style = new CSSStyleSheet();
  style.replaceSync(`
    :root, :host, button, input, select, svg { font-family: "DejaVu Sans" !important; }
    code { font-family: "DejaVu Sans Mono" !important; }
    .map canvas, .chart:not([data-fixed]) canvas, .chart:not([data-fixed]) .u-legend { visibility: hidden; }
    .status { visibility: hidden; }`);
  const freezeIn = (root) => {
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, style];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let n = walker.nextNode(); n; n = walker.nextNode()) {
      const text = n.data
        .replace(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, "ID")
        .replace(/\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b/g, "ID")
        .replace(/\b[A-Z0-9]{26}\b/g, "ID")
        .replace(/\d+ (d|h|min|s)( \d+ (h|min|s))?( ago)?/g, "AGE")
        .replace(/[+−-]?\d[\d,.:]*/g, "0");
      if (text !== n.data) n.data = text;
    }
    for (const e of root.querySelectorAll("*")) if (e.shadowRoot) freezeIn(e.shadowRoot);
  };
  freezeIn(document);
  document.activeElement?.blur();
  window.scrollTo(0, 0);
}

/** Runs in the lab. */
async function compare([a, b, size, most]) {
  const load = async (base64) => createImageBitmap(await (await fetch("data:image/png;base64," + base64)).blob());
  const [x, y] = await Promise.all([load(a), load(b)]);
  const width = Math.max(x.width, y.width);
  const height = Math.max(x.height, y.height);
  const pixels = (image) => {
    const c = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    c.drawImage(image, 0, 0);
    return c.getImageData(0, 0, width, height).data;
  };
  const [p, q] = [pixels(x), pixels(y)];
  let changed = 0;
  let blocks = 0;
  for (let top = 0; top < height; top += size) {
    for (let left = 0; left < width; left += size) {
      let sum = 0;
      let n = 0;
      for (let row = top; row < Math.min(top + size, height); row++) {
        for (let column = left; column < Math.min(left + size, width); column++, n++) {
          const i = 4 * (row * width + column);
          sum += 0.3 * (p[i] - q[i]) + 0.59 * (p[i + 1] - q[i + 1]) + 0.11 * (p[i + 2] - q[i + 2]);
        }
      }
      blocks++;
      if (Math.abs(sum / n) > most) changed++;
    }
  }
  return { changed, blocks };
}
