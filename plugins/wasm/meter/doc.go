// Package meter rewrites WebAssembly modules so that they count their instructions and
// stop if they exceed a limit. The engine offers neither: its deadline is slow, depends
// on the clock, and misses recursion. Fuel spent here is a property of module and input
// alone, the same on every machine and engine.
//
// It owns the rewriting, the accounting below, and the decision which modules can be
// metered. It never runs a module, does not check the types of instructions (the engine
// does, and an invalid module remains invalid), and does not depend on the purpose of a
// module. The Wasm host calls it on every module before the engine does. The result
// announces no vectors, locals or tables that a module of its size cannot have, because
// engines allocate them at once. DESIGN.md contains the reasons.
//
// Instrument is safe for concurrent use. It takes time and memory in proportion to the
// module.
//
// # Metered modules
//
// It exports a mutable i64 global as FuelGlobal, which starts at zero. The host sets it
// before a call and reads it after. If the fuel does not suffice, the global becomes
// negative and the function Module.Yield is called. If a host that observes its calls adds
// fuel, the call continues. Otherwise the global becomes -1 and the call ends with an
// unreachable trap. After a call that returned it is zero or more, and the difference to
// all fuel added is the cost of the call. After any other trap it is the fuel that was left
// at an earlier point of the call.
// Instantiation by the engine is not charged: the segments that it copies are part of
// the module.
//
// A host function reads the current value from the global, and may lower it to charge
// for its own work. If the value is negative, the call ends when the function returns.
//
// While a function that calls others runs, the fuel is less by one tick for each 64 bytes of
// the stack that it may use in an engine. It gets them back when it returns.
//
// The start function is exported as StartExport, and not run by instantiation.
//
// Indexes of types, functions, tables, memories, globals and locals do not change.
// Custom sections are dropped, except the names of functions, which appear in the stack
// traces of an engine. A line table (.debug_line) is returned as Lines, and the module then
// has debug information with which an engine reports offsets.
// Tables get Options.MaxTableElements as their maximum if theirs is larger.
//
// # Accounting
//
// One tick is one instruction. nop, block, loop, else and end are free: they do nothing
// at run time. Besides:
//
//   - Entering a function takes 1 tick, and 1 for each local that it declares
//     (parameters are no locals here): they are set to zero.
//   - memory.fill, memory.copy and memory.init take 1 more for every full 8
//     bytes; table.fill, table.copy, table.init and table.grow 1 more for every
//     element; memory.grow 8,192 more for every page, unless more than 65,536
//     are requested, which fails at once. It does not matter whether they succeed.
//
// Lengths are charged before the instruction, and all else by regions: a region is
// charged whole, before its first instruction runs. Each instruction belongs to the
// region that is current where it stands:
//
//  1. The function's body begins a region.
//  2. loop begins one behind itself, charged in each iteration; so do if and
//     else for their arms. The if itself belongs to the region before it.
//  3. Behind the end of a block, loop or if, a region begins if a branch within
//     goes to a label outside, or a return is there. Otherwise what follows runs
//     exactly when the block was entered: the region that was current before the
//     block, loop or if continues.
//  4. An if of at most 8 ticks without else, calls, lengths and blocks of its
//     own is part of the region around it, and that region continues behind it,
//     regardless of 2 and 3.
//  5. What follows br, br_table, return and unreachable up to the next else or
//     end of a block that was reached itself cannot run. It is not charged, and
//     its branches do not count in 3.
//
// Each instruction is thus charged before it runs, every time. Charged but not run are
// only the instructions that conditional branches skip, up to the next label that a
// branch passes. Ticks do not depend on the engine.
//
// Fuel is checked where functions begin, in each iteration of a loop, behind the charge
// for a length, after calls that may reach the host, and where a function returns. Between
// two checks no more can run than one function has
// instructions.
package meter
