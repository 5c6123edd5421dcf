package dra

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/scanner"
)

// An expression is a node of the syntax tree of a selector in the Common Expression
// Language. Selectors use a small part of it; parse returns an error for the rest.
type expression struct {
	op   string // "value", "name", "list", ".", "[]", "call", or an operator
	text string // of a name, a member or a function
	lit  any    // of a value
	args []*expression
}

// Limits of an expression, which is untrusted input. They exceed those of the API server.
const (
	maxExpression = 10 << 10
	maxDepth      = 50
)

var errExpression = errors.New("unsupported selector")

// parse parses an expression.
func parse(text string) (*expression, error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("%w: longer than %d characters", errExpression, maxExpression)
	}
	p := &parser{}
	p.scan.Init(strings.NewReader(text))
	p.scan.Mode = scanner.ScanIdents | scanner.ScanInts | scanner.ScanFloats | scanner.ScanStrings | scanner.ScanChars
	p.scan.Error = func(*scanner.Scanner, string) {} // of single quotes, which are read below
	p.next()
	e := p.binary(0)
	if p.err == nil && p.token != scanner.EOF {
		p.fail()
	}
	return e, p.err
}

// A parser reads the tokens of an expression. After an error it returns arbitrary trees.
type parser struct {
	scan  scanner.Scanner
	token rune
	text  string
	depth int
	err   error
}

func (p *parser) next() {
	p.token = p.scan.Scan()
	p.text = p.scan.TokenText()
}

func (p *parser) fail() *expression {
	if p.err == nil {
		p.err = fmt.Errorf("%w near %.20q", errExpression, p.text)
	}
	p.token = scanner.EOF
	return &expression{}
}

// accept consumes a token if it is next.
func (p *parser) accept(token rune) bool {
	if p.token != token {
		return false
	}
	p.next()
	return true
}

// operators lists the binary operators by increasing precedence.
var operators = [][]string{{"||"}, {"&&"}, {"==", "!=", "<=", ">=", "<", ">", "in"}}

// operator consumes one of the operators if it is next, and returns it or "".
func (p *parser) operator(among []string) string {
	for _, op := range among {
		switch {
		case op == "in" && p.token == scanner.Ident && p.text == op,
			len(op) == 1 && p.text == op && p.scan.Peek() != '=':
			p.next()
			return op
		case len(op) == 2 && op != "in" && p.text == op[:1] && p.scan.Peek() == rune(op[1]):
			p.scan.Next()
			p.next()
			return op
		}
	}
	return ""
}

// binary parses operators of a precedence and above.
func (p *parser) binary(level int) *expression {
	if level == len(operators) {
		return p.unary()
	}
	left := p.binary(level + 1)
	for p.err == nil {
		op := p.operator(operators[level])
		if op == "" {
			break
		}
		left = &expression{op: op, args: []*expression{left, p.binary(level + 1)}}
	}
	return left
}

func (p *parser) unary() *expression {
	if p.depth++; p.depth > maxDepth {
		return p.fail()
	}
	defer func() { p.depth-- }()
	switch p.token {
	case '!':
		p.next()
		return &expression{op: "!", args: []*expression{p.unary()}}
	case '-':
		p.next()
		if n, ok := p.unary().lit.(int64); ok {
			return &expression{op: "value", lit: -n}
		}
		return p.fail()
	}
	return p.postfix(p.primary())
}

// postfix parses members, indices and calls of methods.
func (p *parser) postfix(e *expression) *expression {
	for p.err == nil {
		switch {
		case p.accept('.'):
			if p.token != scanner.Ident {
				return p.fail()
			}
			e = &expression{op: ".", text: p.text, args: []*expression{e}}
			p.next()
		case p.token == '(' && (e.op == "." || e.op == "name"):
			p.next()
			e = &expression{op: "call", text: e.text, args: append(slices.Clip(e.args), p.list(')')...)}
		case p.accept('['):
			index := p.list(']')
			if len(index) != 1 {
				return p.fail()
			}
			e = &expression{op: "[]", args: []*expression{e, index[0]}}
		default:
			return e
		}
	}
	return e
}

// list parses expressions up to the end token.
func (p *parser) list(end rune) (list []*expression) {
	for p.err == nil && !p.accept(end) {
		if len(list) > 0 && !p.accept(',') {
			p.fail()
			break
		}
		list = append(list, p.binary(0))
	}
	return list
}

func (p *parser) primary() *expression {
	text := p.text
	switch p.token {
	case '(':
		p.next()
		e := p.binary(0)
		if !p.accept(')') {
			return p.fail()
		}
		return e
	case '[':
		p.next()
		return &expression{op: "list", args: p.list(']')}
	case scanner.Int:
		n, err := strconv.ParseInt(text, 0, 64)
		if err != nil {
			return p.fail()
		}
		p.next()
		return &expression{op: "value", lit: n}
	case scanner.String:
		s, err := strconv.Unquote(text)
		if err != nil {
			return p.fail()
		}
		p.next()
		return &expression{op: "value", lit: s}
	case scanner.Char: // a string in single quotes
		s := strings.Trim(text, "'")
		if len(text) < 2 || strings.ContainsAny(s, `\'`) {
			return p.fail()
		}
		p.next()
		return &expression{op: "value", lit: s}
	case scanner.Ident:
		p.next()
		if text == "true" || text == "false" {
			return &expression{op: "value", lit: text == "true"}
		}
		return &expression{op: "name", text: text}
	}
	return p.fail()
}
