package kube

import (
	"bytes"
	"encoding/json"
)

// ReadExtenderArgs reads what filter and prioritize are asked. Nodes that come whole
// are found by their brackets alone, and are read by nobody here: a request may carry
// all nodes of a cluster, of which the reader knows most as they are.
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
		items, p.out = nil, text // it is none, or an odd one: decoding says so
	}
	args := &ExtenderArgs{}
	err := json.Unmarshal(p.out, args)
	if items != nil && args.Nodes != nil {
		args.Nodes.Items = items
	}
	return args, err
}

// eachField copies the object that begins here, but for the values of its fields, of
// which visit sees to one after the other; false where there is none.
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

// peek is the byte after white space; 0 where there is none.
func (p *fieldScanner) peek() byte {
	c, _ := p.next()
	return c
}

// copied copies the value that begins here.
func (p *fieldScanner) copied() bool { return p.value(nil) }

// elements lists the texts of the array that begins here.
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
