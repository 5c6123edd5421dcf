;; SelectVictims writes a hundred thousand empty pieces of text with each call of the host.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
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
  (func (export "cede_select_victims") (param $frame i32) (param i32) (result i32)
    (loop $again
      (drop (call $write (i32.const 1) (i32.const 0x80000) (i32.const 100000) (i32.const 96)))
      (br $again))
    (i32.const 0))
)
