/// The level of a line of the log.
#[derive(Clone, Copy)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

#[link(wasm_import_module = "cede_v1")]
extern "C" {
    #[link_name = "log"]
    fn host_log(level: i32, at: *const u8, length: usize);
}

/// Writes a line to the host's log, which truncates long lines and drops lines above a
/// rate: for debugging, never for decisions. A module imports it only if it calls it.
pub fn log(level: Level, line: &str) {
    // Safety: the host reads these bytes and retains none.
    unsafe { host_log(level as i32, line.as_ptr(), line.len()) }
}
