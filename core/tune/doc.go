// Package tune searches a space of policies for the one that meets an objective best. It
// races candidates: all play the same workloads, one after the other, and those that are
// shown to be worse are eliminated early, so that most plays are spent on good candidates.
// New candidates resemble the survivors.
//
// The race selects; it proves nothing, because the best of many candidates is partly lucky.
// The claim about the selected candidate rests on held-out workloads, which are played once,
// after the selection. docs/adr/0088-tune-by-racing.md explains the choice.
//
// The package plays nothing itself: Search.Play does. Equal results of Play and an equal seed
// return equal results. A Search serves one goroutine; cmd/internal/cli/policy/tune calls it.
package tune
