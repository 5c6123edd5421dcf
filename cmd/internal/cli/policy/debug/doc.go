// Package debug holds cede policy debug: it shows one decision of a policy, call by call, from
// a golden case, a recording or a certificate. All three are reduced to the calls of hooks
// with their inputs and answers, as package certificate records them.
package debug
