;; It traps when it describes itself.
(module
  (memory (export "memory") 32)
  (data (i32.const 16) "hostile")
  (func (export "cede_abi_version") (result i32) (i32.const 0x10000))
  (func (export "cede_alloc") (param i32) (result i32) (i32.const 1024)) ;; all there is from here on
  (func (export "cede_describe") (param $frame i32) (param i32) (result i32)
    (unreachable))
)
