/** The level of a line of the log. */
export enum Level {
  DEBUG,
  INFO,
  WARN,
  ERROR,
}

// @ts-ignore: decorator
@external("cede_v1", "log")
declare function hostLog(level: i32, at: usize, length: i32): void;

/**
 * Writes a line to the host's log, which truncates long lines and drops lines above a
 * rate: for debugging, never for decisions. A module imports it only if it calls it.
 */
export function log(level: Level, line: string): void {
  const bytes = String.UTF8.encode(line);
  hostLog(level, changetype<usize>(bytes), bytes.byteLength);
}

/**
 * Handles a throw or a failed assertion: with `--use abort=cedeAbort` the reason is
 * written to the host's log before the module traps.
 */
// @ts-ignore: decorator
@global
export function cedeAbort(message: string | null, file: string | null, line: u32, column: u32): void {
  log(Level.ERROR, (file === null ? "" : file) + ":" + decimal(line) + ": " + (message === null ? "abort" : message));
  unreachable();
}

/** A number in digits, without the tables of the standard library. */
function decimal(n: u32): string {
  return (n > 9 ? decimal(n / 10) : "") + String.fromCharCode(0x30 + <i32>(n % 10));
}
