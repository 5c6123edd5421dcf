package jobspec

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

const (
	// maxOperators bounds expressions that nest without brackets. The parser and the
	// evaluator recurse once per operator, and Go terminates a process if its stack
	// overflows.
	maxOperators = 5000
	// maxUnary is the maximum number of consecutive unary operators.
	maxUnary = 8
)

// withinHCLBounds reports whether a file stays within the limits on nesting and
// operators. It scans the tokens before the file is parsed, because the parser
// recurses for every bracket. If a limit is exceeded, it adds a problem and returns
// false.
func (r *parser) withinHCLBounds(src []byte) bool {
	tokens, _ := hclsyntax.LexConfig(src, r.file, hcl.InitialPos) // the parser reports lexical errors
	depth, operators, unary := 0, 0, 0
	for _, t := range tokens {
		signs := 0
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen,
			hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl, hclsyntax.TokenOHeredoc:
			depth++
			operators++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen,
			hclsyntax.TokenTemplateSeqEnd, hclsyntax.TokenCHeredoc:
			depth = max(depth-1, 0)
		case hclsyntax.TokenBang, hclsyntax.TokenMinus:
			signs = unary + 1
			operators++
		case hclsyntax.TokenQuestion, hclsyntax.TokenPlus, hclsyntax.TokenStar, hclsyntax.TokenSlash, hclsyntax.TokenPercent,
			hclsyntax.TokenAnd, hclsyntax.TokenOr, hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual,
			hclsyntax.TokenLessThan, hclsyntax.TokenLessThanEq, hclsyntax.TokenGreaterThan, hclsyntax.TokenGreaterThanEq,
			hclsyntax.TokenDot, hclsyntax.TokenColon:
			operators++
		}
		unary = signs
		at := startOf(t.Range)
		switch {
		case depth > maxDepth:
			r.add(at, fmt.Sprintf("brackets nested more than %d deep", maxDepth), "check the brackets and quotes before this")
		case unary > maxUnary:
			r.add(at, fmt.Sprintf("more than %d signs in a row", maxUnary), "remove them")
		case operators > maxOperators:
			r.add(at, fmt.Sprintf("more than %d brackets and operators", maxOperators), "check that this is a job file")
		default:
			continue
		}
		return false
	}
	return true
}

// A budget bounds the bytes of text that the expressions of one file produce.
type budget struct{ spent int }

// maxEvalBytes is the total number of bytes of text that expressions may produce.
const maxEvalBytes = 4 << 20

// spend charges n bytes and returns false if the budget is exceeded.
func (b *budget) spend(n int) bool {
	b.spent += n
	return b.spent <= maxEvalBytes
}
