;; Work that is hidden where a careless meter does not look: behind calls, so
;; that it is done while a deep recursion returns.
(module
  (func $deep (export "deep") (param $n i32)
    (if (local.get $n)
      (then (call $deep (i32.sub (local.get $n) (i32.const 1)))
            (call $deep (i32.const 0))))
    (block $b (br_if $b (i32.eqz (local.get $n))) (call $work)))
  (func $work (local i32)
    (block (block (br_if 0 (local.get 0)) (br 1)) (return))
    local.get 0 drop local.get 0 drop local.get 0 drop local.get 0 drop
    local.get 0 drop local.get 0 drop local.get 0 drop local.get 0 drop
    local.get 0 drop local.get 0 drop local.get 0 drop local.get 0 drop))
