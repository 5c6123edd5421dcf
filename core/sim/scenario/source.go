package scenario

// kind is the type of a document event.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindKey // of the innermost open mapping
	kindObject
	kindObjectEnd
	kindList
	kindListEnd
	kindEnd // of the document
)

// event is one token of a document. Text is valid until the next call of next.
type event struct {
	kind kind
	line int
	text []byte // of scalars and keys: as written, with escapes resolved
}

// source iterates over a document, independent of its encoding. If the document cannot
// be parsed further, next panics with a fatal, which Decode recovers.
type source interface {
	next() event
}

// fatal ends decoding. After a syntax error the rest of the file has no reliable
// meaning, and earlier problems are reported again once the syntax is correct.
type fatal struct {
	problem Problem
	err     error
}

// maxDepth bounds nesting. The schema needs 9 levels; configurations of policies may
// be deeper.
const maxDepth = 100

func tooDeep(line int) fatal {
	return fatal{problem: Problem{
		Line:    line,
		Message: "nested more than 100 levels deep: a scenario requires fewer than ten",
		Remedy:  "check that this is a scenario file",
	}}
}
