package kube

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// Most of a dump is never read: images, conditions, managed fields. encoding/json
// scans such values twice. Removing them first costs one fast pass over the text and
// reduces the time of decoding.

// A fieldFilter selects the fields to decode. Nil selects everything.
type fieldFilter struct {
	fields map[string]*fieldFilter // of an object, by lower-case name
	each   *fieldFilter            // for the elements of an array
}

// filterByKind has a filter for each frequent kind.
var filterByKind = map[string]*fieldFilter{
	"Node": filterOf(reflect.TypeFor[Node]()), "Pod": filterOf(reflect.TypeFor[Pod]()),
}

// filterOf returns the filter for the fields of a type.
func filterOf(t reflect.Type) *fieldFilter {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return nil
	case t.Kind() == reflect.Slice:
		if each := filterOf(t.Elem()); each != nil {
			return &fieldFilter{each: each}
		}
		return nil
	case t.Kind() != reflect.Struct:
		return nil
	}
	w := &fieldFilter{fields: map[string]*fieldFilter{}}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		w.fields[strings.ToLower(name)] = filterOf(f.Type)
	}
	return w
}

// filterFields returns an object's text without the fields that are not decoded for
// its kind. If the kind has no filter or the text is malformed, it returns the text
// itself, so that decoding reports the error. The result may use scratch.
func filterFields(kind string, text, scratch []byte) []byte {
	w := filterByKind[kind]
	if w == nil {
		return text
	}
	p := fieldScanner{text: text, out: scratch[:0]}
	if !p.value(w) {
		return text
	}
	if p.space(); p.at < len(text) {
		return text
	}
	return p.out
}

type fieldScanner struct {
	text []byte
	at   int
	out  []byte
}

// value copies the selected parts of the value at the current position. It returns
// false if there is none.
func (p *fieldScanner) value(w *fieldFilter) bool {
	p.space()
	if p.at == len(p.text) {
		return false
	}
	switch c := p.text[p.at]; {
	case w != nil && w.fields != nil && c == '{':
		return p.object(w)
	case w != nil && w.each != nil && c == '[':
		return p.array(w)
	}
	from := p.at
	if !p.skip() {
		return false
	}
	p.out = append(p.out, p.text[from:p.at]...)
	return true
}

func (p *fieldScanner) object(w *fieldFilter) bool {
	p.at++
	p.out = append(p.out, '{')
	for first, any := true, false; ; first = false {
		c, ok := p.next()
		switch {
		case !ok:
			return false
		case c == '}' && first:
			p.at++
			p.out = append(p.out, '}')
			return true
		case c != '"':
			return false
		}
		from := p.at
		if !p.quoted() {
			return false
		}
		key := p.text[from:p.at]
		if c, ok := p.next(); !ok || c != ':' {
			return false
		}
		p.at++
		if below, read := w.lookup(key); read {
			if any {
				p.out = append(p.out, ',')
			}
			any = true
			p.out = append(append(p.out, key...), ':')
			if !p.value(below) {
				return false
			}
		} else if p.space(); !p.skip() {
			return false
		}
		switch c, ok := p.next(); {
		case ok && c == ',':
			p.at++
		case ok && c == '}':
			p.at++
			p.out = append(p.out, '}')
			return true
		default:
			return false
		}
	}
}

func (p *fieldScanner) array(w *fieldFilter) bool {
	p.at++
	p.out = append(p.out, '[')
	if c, ok := p.next(); ok && c == ']' {
		p.at++
		p.out = append(p.out, ']')
		return true
	}
	for {
		if !p.value(w.each) {
			return false
		}
		c, ok := p.next()
		if !ok || c != ',' && c != ']' {
			return false
		}
		p.at++
		p.out = append(p.out, c)
		if c == ']' {
			return true
		}
	}
}

// lookup returns the filter for a quoted key, and false if the field is not decoded.
func (w *fieldFilter) lookup(key []byte) (below *fieldFilter, read bool) {
	var lower [64]byte
	if len(key) > len(lower) || bytes.IndexByte(key, '\\') >= 0 {
		return nil, true // may be an escaped form of a selected key
	}
	for i, c := range key {
		if c >= 0x80 {
			return nil, true
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	below, read = w.fields[string(lower[1:len(key)-1])]
	return below, read
}

// next returns the next byte that is not white space.
func (p *fieldScanner) next() (c byte, ok bool) {
	p.space()
	if p.at == len(p.text) {
		return 0, false
	}
	return p.text[p.at], true
}

func (p *fieldScanner) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\n', '\t', '\r':
			p.at++
		default:
			return
		}
	}
}

// quoted skips the string at the current position.
func (p *fieldScanner) quoted() bool {
	for p.at++; ; p.at++ {
		i := bytes.IndexByte(p.text[p.at:], '"')
		if i < 0 {
			return false
		}
		p.at += i
		escapes := 0
		for p.text[p.at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			p.at++
			return true
		}
	}
}

// skip skips the value at the current position. It matches brackets and quotes only
// and does not validate the value.
func (p *fieldScanner) skip() bool {
	depth, from := 0, p.at
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case '"':
			if !p.quoted() {
				return false
			}
			if depth == 0 {
				return true
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return p.at > from
			}
			if depth--; depth == 0 {
				p.at++
				return true
			}
		case ',', ' ', '\n', '\t', '\r', ':':
			if depth == 0 {
				return p.at > from
			}
		}
		p.at++
	}
	return depth == 0 && p.at > from
}
