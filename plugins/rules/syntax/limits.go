package syntax

import "cel.dev/cel-go/cel"

// Limits of one expression.
const (
	MaxNodes = 500
	MaxDepth = 60
)

// Limits returns the options of every environment. Macros are off: expressions do not
// loop.
func Limits() []cel.EnvOption {
	return []cel.EnvOption{
		cel.ClearMacros(), cel.ParserRecursionLimit(MaxDepth), cel.ParserErrorRecoveryLimit(4),
		cel.ExpressionNodeLimit(MaxNodes), cel.ExpressionNestingDepthLimit(MaxDepth),
	}
}
