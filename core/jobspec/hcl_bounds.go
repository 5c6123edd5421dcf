package jobspec

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

const (
	// maxOperators bounds what makes expressions deep without brackets: the
	// parser and the evaluator call themselves once for each, and Go ends a
	// process whose stack is used up.
	maxOperators = 5000
	// maxUnary is how many signs may stand before each other.
	maxUnary = 8
)

// withinHCLBounds looks at a file's tokens before the parser does, which calls itself
// for every bracket.
func (r *parser) withinHCLBounds(src []byte) bool {
	tokens, _ := hclsyntax.LexConfig(src, r.file, hcl.InitialPos) // the parser tells what is wrong with them
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

// budget bounds what evaluating a file may make.
type budget struct{ spent int }

// maxEvalBytes is how many bytes of text expressions may make in all.
const maxEvalBytes = 4 << 20

// spend reports whether n more bytes are within the bounds.
func (b *budget) spend(n int) bool {
	b.spent += n
	return b.spent <= maxEvalBytes
}
