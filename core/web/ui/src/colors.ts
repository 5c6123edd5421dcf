// Colors of priorities. They differ in lightness, so that they can be told apart without hue.
const scale = ["#cfe8e2", "#8fd0c0", "#4fb0a5", "#f2b84b", "#e2793f", "#b3404a"];

/** Divides the priorities that occur into at most as many bands as there are colors. */
export class Bands {
  private readonly limits: number[]; // lowest priority of each band, ascending

  constructor(priorities: Iterable<number>) {
    const values = [...new Set(priorities)].sort((a, b) => a - b);
    const n = Math.min(scale.length, values.length);
    this.limits = Array.from({ length: n }, (_, i) => values[Math.floor((i * values.length) / n)]!);
  }

  color(priority: number): string {
    return this.colorOf(this.band(priority));
  }

  private colorOf(band: number): string {
    const n = this.limits.length;
    return scale[n <= 1 ? 2 : Math.round((band * (scale.length - 1)) / (n - 1))]!;
  }

  private band(priority: number): number {
    let i = this.limits.length - 1;
    while (i > 0 && this.limits[i]! > priority) i--;
    return Math.max(0, i);
  }

  /** The bands with their colors, from the lowest priority on. */
  legend(): { label: string; color: string }[] {
    return this.limits.map((low, i) => {
      const next = this.limits[i + 1];
      const single = next === undefined || next === low + 1;
      return { label: next === undefined ? `${low} and above` : single ? `${low}` : `${low} to below ${next}`, color: this.colorOf(i) };
    });
  }
}
