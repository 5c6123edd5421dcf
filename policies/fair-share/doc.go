// Package fairshare owns the policy named fair-share: of strictly lower work
// it evicts that of the namespaces which have most, measured by their dominant
// share over their weight.
//
// A namespace's share is computed as it will be once the preemptor runs, and
// falls with each of its victims, so that the burden moves on when another has
// more. That is done here, for one option after another, and not by Adaptive:
// the table of namespaces says all that is needed, and one call is enough where
// rounds would be one for each victim. Within a namespace the lowest priority
// goes first, and within a priority what is nearest to what is needed. Between
// namespaces priority decides nothing but who is a candidate at all.
//
// README.md is for operators. A Policy keeps its configuration and scratch
// memory, and nothing between calls; it is used by one goroutine at a time.
package fairshare
