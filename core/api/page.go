package api

import (
	"encoding/base64"
	"strings"
)

// page is which part of a list is asked for.
type page struct {
	from string // key of the first element; "": the first
	most int    // 0: all
}

// maxPage is how much is listed at most where pages are asked for.
const maxPage = 10_000

func (c *call) page() (page, error) {
	n, err := c.number("per_page")
	if err != nil {
		return page{}, err
	}
	token := c.r.URL.Query().Get("next_token")
	from, ok := keyOf(token)
	if !ok {
		return page{}, invalid("next_token=%s is not one that a list was answered with", quote(token)).with("Parameter", "next_token")
	}
	return page{from: from, most: int(min(n, maxPage))}, nil
}

// pageMark begins what tokens hold: other text is mostly no token of ours.
const pageMark = "\x01"

func pageToken(key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(pageMark + key))
}

// keyOf is the key that a token was made of; false: it was not made here.
func keyOf(token string) (key string, ok bool) {
	if token == "" {
		return "", true
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", false
	}
	return strings.CutPrefix(string(text), pageMark)
}

// pageKey is the key of something in a list, ordered by its parts one after
// another: what is between them is below whatever an id may hold.
func pageKey(parts ...string) string { return strings.Join(parts, "\x00") }

// pager fills a page with what comes in ascending order of its keys.
type pager[T any] struct {
	page
	list []T
	next string
}

// add is whether there may be room for more.
func (p *pager[T]) add(key string, make func() T) bool {
	if key < p.from {
		return true
	}
	if p.most > 0 && len(p.list) == p.most {
		p.next = key
		return false
	}
	p.list = append(p.list, make())
	return true
}

// result is the list, which is never null, with the header for the next page.
func (p *pager[T]) result(c *call) []T {
	h := c.w.Header()
	h.Del(headerNext)
	if p.next != "" {
		h.Set(headerNext, pageToken(p.next))
	}
	if p.list == nil {
		p.list = []T{}
	}
	return p.list
}
