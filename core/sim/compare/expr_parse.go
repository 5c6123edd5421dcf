package compare

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/cede-scheduler/cede/core/sim/metrics"
)

// maxNesting bounds recursion. Realistic expressions stay far below it.
const maxNesting = 100

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenNumber
	tokenWord // a metric name, a function, and, or, not
	tokenOperator
)

type token struct {
	kind   tokenKind
	text   string
	column int
	quoted bool
}

// parser parses an expression by recursive descent, lowest precedence first.
type parser struct {
	text     string
	runes    []rune
	policies []string
	tokens   []token
	at       int
	depth    int
}

var operators = []string{"<=", ">=", "==", "!=", "??", "&&", "||", "<", ">", "=", "!", "+", "-", "*", "/", "(", ")", ",", "%"}

// scan splits the text into tokens. A word ends at a space, a comma, or an operator
// other than - and /: metrics contain both, as in queueDelay.-5..0.p99 and
// wastedWork.nvidia.com/gpu. The text in the parentheses of a metric is a policy name
// and becomes one token, because such names can be paths or queries.
func (p *parser) scan() error {
	p.runes = []rune(p.text)
	for i := 0; i < len(p.runes); {
		r := p.runes[i]
		switch {
		case unicode.IsSpace(r):
			i++
		case r >= '0' && r <= '9' || r == '.':
			i = p.number(i)
		case r == '\'' || r == '"':
			end := slices.Index(p.runes[i+1:], r)
			if end < 0 {
				return p.fail(token{column: i + 1}, "unterminated quote", "")
			}
			p.tokens = append(p.tokens, token{tokenWord, string(p.runes[i+1 : i+1+end]), i + 1, true})
			i = p.policy(i + end + 2)
		case unicode.IsLetter(r):
			end := i
			for end < len(p.runes) && !unicode.IsSpace(p.runes[end]) && !strings.ContainsRune("()<>=!+*,'\"?&|", p.runes[end]) {
				end++
			}
			p.tokens = append(p.tokens, token{tokenWord, string(p.runes[i:end]), i + 1, false})
			i = p.policy(end)
		default:
			op := ""
			for _, o := range operators {
				if strings.HasPrefix(string(p.runes[i:min(i+2, len(p.runes))]), o) {
					op = o
					break
				}
			}
			if op == "" {
				return p.fail(token{column: i + 1}, "unexpected character "+strconv.QuoteRune(r), "see: cede help expressions")
			}
			p.tokens = append(p.tokens, token{tokenOperator, op, i + 1, false})
			i += len(op)
		}
	}
	p.tokens = append(p.tokens, token{tokenEnd, "", len(p.runes) + 1, false})
	return nil
}

// number scans a number at position i and returns its end.
func (p *parser) number(i int) int {
	end := i
	for end < len(p.runes) {
		r := p.runes[end]
		exponent := (r == '+' || r == '-') && (p.runes[end-1] == 'e' || p.runes[end-1] == 'E') && end > i
		if !exponent && r != '.' && r != '_' && !unicode.IsDigit(r) && !unicode.IsLetter(r) {
			break
		}
		end++
	}
	p.tokens = append(p.tokens, token{tokenNumber, string(p.runes[i:end]), i + 1, false})
	return end
}

// policy scans the unquoted name in the parentheses after a metric as one token.
func (p *parser) policy(i int) int {
	word := p.tokens[len(p.tokens)-1]
	start := i
	for start < len(p.runes) && unicode.IsSpace(p.runes[start]) {
		start++
	}
	if isKeyword(word) || isFunction(word) || start >= len(p.runes) || p.runes[start] != '(' {
		return i
	}
	inner := start + 1
	for inner < len(p.runes) && unicode.IsSpace(p.runes[inner]) {
		inner++
	}
	end := inner
	for end < len(p.runes) && !strings.ContainsRune("(),'\"", p.runes[end]) {
		end++
	}
	p.tokens = append(p.tokens, token{tokenOperator, "(", start + 1, false})
	if name := strings.TrimSpace(string(p.runes[inner:end])); name != "" {
		p.tokens = append(p.tokens, token{tokenWord, name, inner + 1, true})
	}
	return end
}

func isKeyword(t token) bool {
	return t.kind == tokenWord && !t.quoted && slices.Contains([]string{"and", "or", "not"}, t.text)
}

func isFunction(t token) bool {
	return t.kind == tokenWord && !t.quoted && slices.Contains([]string{"low", "high", "worse", "better", "median"}, t.text)
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokenEnd {
		p.at++
	}
	return t
}

// accept consumes the next token if it is one of these operators or keywords. It
// returns the token in its canonical spelling.
func (p *parser) accept(spellings ...string) (token, bool) {
	t := p.peek()
	if t.quoted || t.kind == tokenEnd || t.kind == tokenNumber || !slices.Contains(spellings, t.text) {
		return t, false
	}
	p.at++
	if other, ok := map[string]string{"&&": "and", "||": "or", "!": "not", "=": "=="}[t.text]; ok {
		t.text = other
	}
	return t, true
}

func (p *parser) expect(op string) error {
	if _, ok := p.accept(op); !ok {
		return p.unexpected(op)
	}
	return nil
}

func (p *parser) fail(at token, msg, hint string) error {
	return &SyntaxError{Text: p.text, Column: at.column, Msg: msg, Hint: hint}
}

func (p *parser) unexpected(want string) error {
	t := p.peek()
	if t.kind == tokenEnd {
		return p.fail(t, "expected "+want+", found the end of the expression", "")
	}
	return p.fail(t, "expected "+want+", found "+t.text, "")
}

// chain parses operands of one precedence and the operators between them. If logical
// is true the operands must be conditions, otherwise numbers.
func (p *parser) chain(operand func() (node, error), logical bool, ops ...string) (node, error) {
	first := p.peek()
	left, err := operand()
	for err == nil {
		op, ok := p.accept(ops...)
		if !ok {
			return left, nil
		}
		if err = p.requireKind(left, first, logical); err != nil {
			break
		}
		second := p.peek()
		var right node
		if right, err = operand(); err == nil {
			err = p.requireKind(right, second, logical)
		}
		left = &binary{op.text, left, right, op}
	}
	return nil, err
}

// requireKind returns an error unless n is a condition or number as required.
func (p *parser) requireKind(n node, at token, logical bool) error {
	switch {
	case logical && !n.boolean():
		return p.fail(at, "expected a condition, found a number", "add a comparison: victims(nomad) > 10")
	case !logical && n.boolean():
		return p.fail(at, "expected a number, found a condition", "join conditions with and, or, not")
	}
	return nil
}

func (p *parser) or() (node, error)  { return p.chain(p.and, true, "or", "||") }
func (p *parser) and() (node, error) { return p.chain(p.not, true, "and", "&&") }

func (p *parser) not() (node, error) {
	if _, ok := p.accept("not", "!"); !ok {
		return p.comparison()
	}
	leave, err := p.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	at := p.peek()
	of, err := p.not()
	if err != nil {
		return nil, err
	}
	return &unary{"not", of}, p.requireKind(of, at, true)
}

// comparison does not chain: 1 < x < 3 is a syntax error.
func (p *parser) comparison() (node, error) {
	first := p.peek()
	left, err := p.sum()
	if err != nil {
		return nil, err
	}
	op, ok := p.accept("<", "<=", ">", ">=", "==", "=", "!=")
	if !ok {
		return left, nil
	}
	if err := p.requireKind(left, first, false); err != nil {
		return nil, err
	}
	second := p.peek()
	right, err := p.sum()
	if err != nil {
		return nil, err
	}
	return &binary{op.text, left, right, op}, p.requireKind(right, second, false)
}

func (p *parser) sum() (node, error)     { return p.chain(p.product, false, "+", "-") }
func (p *parser) product() (node, error) { return p.chain(p.orElse, false, "*", "/") }
func (p *parser) orElse() (node, error)  { return p.chain(p.atom, false, "??") }

// enter increments the nesting depth. It returns an error if the expression is nested
// too deeply.
func (p *parser) enter() (leave func(), err error) {
	if p.depth++; p.depth > maxNesting {
		return nil, p.fail(p.peek(), "nested too deeply", "")
	}
	return func() { p.depth-- }, nil
}

func (p *parser) atom() (node, error) {
	leave, err := p.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if _, ok := p.accept("-"); ok {
		at := p.peek()
		of, err := p.atom()
		if err != nil {
			return nil, err
		}
		return &unary{"-", of}, p.requireKind(of, at, false)
	}
	if _, ok := p.accept("("); ok {
		inner, err := p.or()
		if err != nil {
			return nil, err
		}
		return inner, p.expect(")")
	}
	t := p.peek()
	switch {
	case t.kind == tokenNumber:
		return p.literal()
	case t.kind != tokenWord || isKeyword(t):
		return nil, p.unexpected("METRIC(POLICY) or a number")
	case isFunction(t):
		return p.function()
	}
	return p.measure("")
}

func (p *parser) literal() (node, error) {
	t := p.next()
	v, err := strconv.ParseFloat(t.text, 64)
	if err != nil {
		return nil, p.fail(t, "invalid number "+t.text, "")
	}
	if _, percent := p.accept("%"); percent {
		v /= 100
	}
	return number(v), nil
}

// function parses low(...), high(...), median(...), worse(...) or better(...).
func (p *parser) function() (node, error) {
	name := p.next()
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var n node
	var err error
	switch name.text {
	case "low", "high":
		n, err = p.measure(name.text)
	case "median":
		n, err = p.measure("")
	default:
		n, err = p.verdict(name.text == "better")
	}
	if err != nil {
		return nil, err
	}
	return n, p.expect(")")
}

// measure parses METRIC(POLICY).
func (p *parser) measure(part string) (node, error) {
	metric, err := p.metric()
	if err != nil {
		return nil, err
	}
	if err := p.expect("("); err != nil {
		return nil, err
	}
	policy, err := p.policyName()
	if err != nil {
		return nil, err
	}
	return &measure{metric, policy, part}, p.expect(")")
}

// verdict parses METRIC, P, Q.
func (p *parser) verdict(better bool) (node, error) {
	v := &verdict{better: better}
	var err error
	if v.metric, err = p.metric(); err != nil {
		return nil, err
	}
	for _, to := range []*string{&v.p, &v.q} {
		if err := p.expect(","); err != nil {
			return nil, err
		}
		if *to, err = p.policyName(); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (p *parser) metric() (string, error) {
	t := p.peek()
	if t.kind != tokenWord || isKeyword(t) {
		return "", p.unexpected("a metric")
	}
	if _, ok := metrics.Define(t.text); !ok {
		return "", p.fail(t, "unknown metric "+t.text, suggest(base(t.text), metricNames(), "see: cede help metrics"))
	}
	p.at++
	return t.text, nil
}

// base returns the first part of a dotted name.
func base(metric string) string {
	first, _, _ := strings.Cut(metric, ".")
	return first
}

func metricNames() []string {
	names := make([]string, len(metrics.Definitions))
	for i, d := range metrics.Definitions {
		names[i] = d.Name
	}
	return names
}

func (p *parser) policyName() (string, error) {
	t := p.peek()
	if t.kind != tokenWord {
		return "", p.unexpected("a policy name")
	}
	if !slices.Contains(p.policies, t.text) {
		return "", p.fail(t, "unknown policy "+t.text, suggest(t.text, p.policies, "policies: "+strings.Join(p.policies, ", ")))
	}
	p.at++
	return t.text, nil
}

// suggest returns a hint with the most similar name, or otherwise if no name is
// similar.
func suggest(given string, names []string, otherwise string) string {
	best, least := "", 1+len(given)/3
	for _, name := range names {
		if d := edits(strings.ToLower(given), strings.ToLower(name)); d <= least {
			if d < least || best == "" {
				best, least = name, d
			}
		}
	}
	if best == "" {
		return otherwise
	}
	return "did you mean " + best + "?"
}

// edits returns the Levenshtein distance of a and b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			corner, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, corner+cost)
		}
	}
	return row[len(b)]
}
