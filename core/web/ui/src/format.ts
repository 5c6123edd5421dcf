// Texts for amounts and times.

const steps: [number, string][] = [[86_400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

/** Formats a number of seconds with the two largest units, such as "3 h 20 min". */
export function duration(seconds: number): string {
  let rest = Math.max(0, Math.round(seconds));
  const parts: string[] = [];
  for (const [size, unit] of steps) {
    const n = Math.floor(rest / size);
    rest -= n * size;
    if (n > 0) parts.push(`${n} ${unit}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.join(" ") || "0 s";
}

/** Formats the time of a Unix timestamp in nanoseconds, in the zone of the browser. */
export function time(nanoseconds: number): string {
  if (!nanoseconds) return "–";
  return new Date(nanoseconds / 1e6).toISOString().replace("T", " ").slice(0, 19) + " UTC";
}

/** Formats the time since a Unix timestamp in nanoseconds. */
export function since(nanoseconds: number): string {
  return nanoseconds ? duration(Date.now() / 1000 - nanoseconds / 1e9) : "–";
}

const units: Record<string, [number, string]> = { cpu: [1000, "core"], memory: [1024, "GiB"], disk: [1024, "GiB"], network: [1, "Mbit/s"] };

/** Formats an amount of a resource, such as "1.5 cores". */
export function amount(resource: string, value: number): string {
  const [size, unit] = units[resource] ?? [1, ""];
  if (unit === "core") return count(value / size, "core", "cores");
  return `${number(value / size)}${unit ? " " + unit : ""}`;
}

/** Formats a number with its noun, such as "1 pair". */
export function count(n: number, one: string, many: string): string {
  return `${number(n)} ${n === 1 ? one : many}`;
}

/** Formats a number with at most two decimals. */
export function number(n: number): string {
  return n.toLocaleString("en", { maximumFractionDigits: 2 });
}

export function percent(part: number, whole: number): string {
  return whole > 0 ? `${Math.round((100 * part) / whole)} %` : "–";
}
