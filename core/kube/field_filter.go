package kube

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// Most of what a dump says of an object nobody here reads: images, conditions,
// managed fields. A general decoder looks at every byte of it twice. So what is not
// read is left out of the text before it is decoded, which costs one quick pass.

// fieldFilter is what is read of a value. Nil: all of it.
type fieldFilter struct {
	fields map[string]*fieldFilter // of an object, by name in lower case
	each   *fieldFilter            // of an array's elements
}

// filterByKind is what is read of the kinds of which there are many.
var filterByKind = map[string]*fieldFilter{
	"Node": filterOf(reflect.TypeFor[Node]()), "Pod": filterOf(reflect.TypeFor[Pod]()),
}

// filterOf is what decoding into a type reads.
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

// filterFields is an object's text without what is not read of its kind; the text itself
// where that is all, or where it is not as objects are: then decoding says what is
// wrong.
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

// value copies what is wanted of the value that begins here; false where there is none.
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

// lookup is what is read under a key, with its quotes; read is false where nothing is.
func (w *fieldFilter) lookup(key []byte) (below *fieldFilter, read bool) {
	var lower [64]byte
	if len(key) > len(lower) || bytes.IndexByte(key, '\\') >= 0 {
		return nil, true // it may be written in another way
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

// next is the byte after white space.
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

// quoted goes past the text that begins here.
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

// skip goes past the value that begins here, which is taken for one by its brackets
// and quotes alone.
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
