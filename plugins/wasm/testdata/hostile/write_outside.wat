;; SelectVictims prints what lies outside of its memory, by lists that do so too, then traps if any of it was taken.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
  (import "cede_v1" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 32)
  (data (i32.const 16) "hostile")
  (func (export "cede_abi_version") (result i32) (i32.const 0x10000))
  (func (export "cede_alloc") (param i32) (result i32) (i32.const 1024)) ;; all there is from here on
  ;; The entry of the n-th answer of a frame, and the answer itself.
  (func $entry (param $frame i32) (param $n i32) (result i32)
    (i32.add (i32.add (local.get $frame) (i32.load offset=60 (local.get $frame))) (i32.mul (local.get $n) (i32.const 16))))
  (func $answer (param $frame i32) (param $n i32) (result i32)
    (i32.add (local.get $frame) (i32.load offset=8 (call $entry (local.get $frame) (local.get $n)))))
  (func (export "cede_describe") (param $frame i32) (param i32) (result i32)
    (memory.copy (call $answer (local.get $frame) (i32.const 0)) (i32.const 16) (i32.const 7))
    (i32.store offset=12 (call $entry (local.get $frame) (i32.const 0)) (i32.const 7))
    (i32.store offset=12 (call $entry (local.get $frame) (i32.const 1)) (i32.const 0)) ;; no version
    (i32.store offset=12 (call $entry (local.get $frame) (i32.const 6)) (i32.const 0)) ;; no settings
    (i32.store (call $answer (local.get $frame) (i32.const 2)) (i32.const 4)) ;; select victims
    (i32.const 0))
  (data (i32.const 64) "\00\00\10\00\00\00\7f\00") ;; much from 0x100000 on
  (data (i32.const 72) "\10\00\00\00\07\00\00\00") ;; 7 bytes at 16
  (func (export "cede_select_victims") (param $frame i32) (param i32) (result i32)
    (if (i32.eqz (call $write (i32.const 1) (i32.const 0x7fffffff) (i32.const 1) (i32.const 96))) (then (unreachable)))
    (if (i32.eqz (call $write (i32.const 1) (i32.const 64) (i32.const 1) (i32.const 96))) (then (unreachable)))
    (if (i32.eqz (call $write (i32.const 1) (i32.const 64) (i32.const 0x20000000) (i32.const 96))) (then (unreachable)))
    (if (i32.eqz (call $write (i32.const 1) (i32.const 72) (i32.const 1) (i32.const -2))) (then (unreachable)))
    (if (i32.eqz (call $write (i32.const 7) (i32.const 72) (i32.const 1) (i32.const 96))) (then (unreachable)))
    (if (i32.eqz (call $random (i32.const -1) (i32.const -1))) (then (unreachable)))
    (if (i32.eqz (call $clock (i32.const 0) (i64.const 0) (i32.const -4))) (then (unreachable)))
    (call $log (i32.const 1) (i32.const -1) (i32.const -1))
    (i32.store offset=12 (call $entry (local.get $frame) (i32.const 0)) (i32.const 0))
    (i32.const 0))
)
