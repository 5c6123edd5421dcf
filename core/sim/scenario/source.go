package scenario

// kind says what an event of a document is.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindKey // of the mapping that is open
	kindObject
	kindObjectEnd
	kindList
	kindListEnd
	kindEnd // of the document
)

// event is one step through a document. Text is valid until the next step.
type event struct {
	kind kind
	line int
	text []byte // of scalars and keys, as written, escapes resolved
}

// source walks a document, whatever it is written in. A document that cannot
// be read further makes next panic with a fatal; Decode recovers it.
type source interface {
	next() event
}

// fatal ends decoding: after a syntax error nothing that follows makes sense,
// and what came before is better repeated once the syntax is right.
type fatal struct {
	problem Problem
	err     error
}

// maxDepth bounds nesting. The format itself needs 9 levels; policies'
// configurations may go deeper.
const maxDepth = 100

func tooDeep(line int) fatal {
	return fatal{problem: Problem{
		Line:    line,
		Message: "nested more than 100 levels deep: a scenario needs fewer than ten",
		Remedy:  "check that this is a scenario file",
	}}
}
