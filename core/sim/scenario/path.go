package scenario

import (
	"strconv"
	"strings"
)

// path is the location of a value, linked from the innermost step outwards. Paths live
// on the stack and are formatted only if there is a problem to report. The nil path is
// the document.
type path struct {
	up *path
	step
}

// step is one element of a path: a field or map key, or an index of a list.
type step struct {
	key   string
	index int // of an element; -1 if key is set
}

func (p *path) field(key string) *path { return &path{up: p, step: step{key: key, index: -1}} }
func (p *path) item(i int) *path       { return &path{up: p, step: step{index: i}} }

func (p *path) String() string {
	return string(p.append(nil))
}

func (p *path) append(b []byte) []byte {
	if p == nil {
		return b
	}
	return p.step.append(p.up.append(b))
}

// append writes [3], .key, or ["nvidia.com/gpu"] for a key that contains path syntax.
func (s step) append(b []byte) []byte {
	switch {
	case s.index >= 0:
		b = append(b, '[')
		b = strconv.AppendInt(b, int64(s.index), 10)
		return append(b, ']')
	case !plainKey(s.key):
		// fmt would move every path to the heap.
		b = append(b, '[')
		b = strconv.AppendQuote(b, s.key[:min(len(s.key), 100)])
		return append(b, ']')
	}
	if len(b) > 0 {
		b = append(b, '.')
	}
	return append(b, s.key...)
}

// plainKey reports whether a key can be written without quotes.
func plainKey(key string) bool {
	for i := range len(key) {
		switch c := key[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return key != "" && len(key) <= 100
}

// steps parses a path. It is the inverse of append.
func steps(text string) []step {
	var list []step
	for text != "" {
		switch {
		case strings.HasPrefix(text, `["`):
			quoted, rest, _ := strings.Cut(text[1:], `"]`)
			key, _ := strconv.Unquote(quoted + `"`)
			list, text = append(list, step{key: key, index: -1}), rest
		case text[0] == '[':
			number, rest, _ := strings.Cut(text[1:], "]")
			i, _ := strconv.Atoi(number)
			list, text = append(list, step{index: i}), rest
		default:
			text = strings.TrimPrefix(text, ".")
			end := strings.IndexAny(text, ".[")
			if end < 0 {
				end = len(text)
			}
			list, text = append(list, step{key: text[:end], index: -1}), text[end:]
		}
	}
	return list
}

// parent returns a path's text without its last step, and false if it is the document.
func parent(text string) (rest string, ok bool) {
	if text == "" {
		return "", false
	}
	if strings.HasSuffix(text, `"]`) {
		// A quoted key may contain any character, but never an unescaped [".
		return text[:strings.LastIndex(text, `["`)], true
	}
	return text[:max(strings.LastIndexAny(text, ".["), 0)], true
}
