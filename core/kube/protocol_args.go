package kube

import (
	"bytes"
	"encoding/json"
)

// ReadExtenderArgs decodes a request of filter or prioritize. Complete nodes are
// located by their brackets and not decoded: a request may carry every node of a
// cluster, most of them unchanged since the previous request.
func ReadExtenderArgs(text []byte) (*ExtenderArgs, error) {
	p := fieldScanner{text: text}
	var items []json.RawMessage
	if !p.eachField(func(key []byte) bool {
		if !bytes.EqualFold(key, []byte(`"nodes"`)) || p.peek() != '{' {
			return p.copied()
		}
		return p.eachField(func(key []byte) bool {
			if !bytes.EqualFold(key, []byte(`"items"`)) || p.peek() != '[' {
				return p.copied()
			}
			var ok bool
			items, ok = p.elements()
			p.out = append(p.out, "[]"...)
			return ok
		})
	}) || p.peek() != 0 {
		items, p.out = nil, text // unexpected form: decode all of it, or return the error
	}
	args := &ExtenderArgs{}
	err := json.Unmarshal(p.out, args)
	if items != nil && args.Nodes != nil {
		args.Nodes.Items = items
	}
	return args, err
}

// eachField copies the keys of the object at the current position and calls visit for
// each value. It returns false if there is no object or visit returns false.
func (p *fieldScanner) eachField(visit func(key []byte) bool) bool {
	if p.peek() != '{' {
		return false
	}
	for first := true; ; first = false {
		p.out = append(p.out, p.text[p.at])
		p.at++
		if p.peek() == '}' && first {
			break
		}
		if p.peek() != '"' {
			return false
		}
		from := p.at
		if !p.quoted() {
			return false
		}
		key := p.text[from:p.at]
		if p.peek() != ':' {
			return false
		}
		p.at++
		p.out = append(append(p.out, key...), ':')
		p.space()
		if !visit(key) {
			return false
		}
		if c := p.peek(); c == '}' {
			break
		} else if c != ',' {
			return false
		}
	}
	p.out = append(p.out, '}')
	p.at++
	return true
}

// peek returns the next byte that is not white space, or 0 at the end.
func (p *fieldScanner) peek() byte {
	c, _ := p.next()
	return c
}

// copied copies the value at the current position.
func (p *fieldScanner) copied() bool { return p.value(nil) }

// elements returns the texts of the elements of the array at the current position.
func (p *fieldScanner) elements() ([]json.RawMessage, bool) {
	list := []json.RawMessage{}
	p.at++
	if p.peek() == ']' {
		p.at++
		return list, true
	}
	for {
		p.space()
		from := p.at
		if !p.skip() {
			return nil, false
		}
		list = append(list, p.text[from:p.at:p.at])
		c := p.peek()
		p.at++
		if c == ']' {
			return list, true
		}
		if c != ',' {
			return nil, false
		}
	}
}
