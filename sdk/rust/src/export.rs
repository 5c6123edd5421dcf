/// Defines the exports of a module: the type of the policy, and the traits that it
/// implements besides [`Policy`](crate::Policy). Use it once in a crate of type cdylib.
///
/// ```ignore
/// cede::export!(Decay: Configurable, PriorityDelta, ScoreVictims);
/// ```
#[macro_export]
macro_rules! export {
    ($policy:ty: $($part:ident),+ $(,)?) => {
        mod cede_exports {
            use super::*;

            static POLICY: $crate::guest::Global<Option<$policy>> = $crate::guest::Global::new(None);

            fn policy() -> &'static mut $policy {
                POLICY.get().get_or_insert_with(<$policy as $crate::Policy>::new)
            }

            #[no_mangle]
            pub extern "C" fn cede_abi_version() -> i32 {
                1 << 16 | 4
            }

            #[no_mangle]
            pub extern "C" fn cede_alloc(size: usize) -> usize {
                $crate::guest::alloc(size)
            }

            #[no_mangle]
            pub extern "C" fn cede_describe(at: *mut u8, length: usize) -> i32 {
                let hooks = 0 $(| $crate::export!(@bit $part))+;
                let settings: Option<&[$crate::Setting]> = None;
                $($crate::export!(@settings $part $policy, settings);)+
                $crate::guest::describe(policy(), hooks, settings, at, length)
            }

            $($crate::export!(@export $part);)+
        }
    };

    (@bit Configurable) => { 0 };
    (@bit PriorityDelta) => { 1 };
    (@bit ScoreVictims) => { 2 };
    (@bit SelectVictims) => { 4 };
    (@bit ScoreOptions) => { 8 };
    (@bit PreemptBindings) => { 16 };

    (@settings Configurable $policy:ty, $settings:ident) => {
        let $settings = $settings.or(Some(<$policy as $crate::Configurable>::SETTINGS));
    };
    (@settings $other:ident $policy:ty, $settings:ident) => {};

    (@export Configurable) => { $crate::export!(@function cede_configure, configure); };
    (@export PriorityDelta) => { $crate::export!(@function cede_priority_delta, priority_delta); };
    (@export ScoreVictims) => { $crate::export!(@function cede_score_victims, score_victims); };
    (@export SelectVictims) => { $crate::export!(@function cede_select_victims, select_victims); };
    (@export ScoreOptions) => { $crate::export!(@function cede_score_options, score_options); };
    (@export PreemptBindings) => { $crate::export!(@function cede_preempt_bindings, preempt_bindings); };

    (@function $symbol:ident, $hook:ident) => {
        #[no_mangle]
        pub extern "C" fn $symbol(at: *mut u8, length: usize) -> i32 {
            $crate::guest::$hook(policy(), at, length)
        }
    };
}
