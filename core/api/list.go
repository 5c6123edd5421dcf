package api

import (
	"encoding/base64"
	"iter"
	"strings"

	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/state"
)

// resource describes how the objects of one table are found and listed.
type resource[T any] struct {
	name        string // used in messages
	table       state.Table
	get         func(*state.Snapshot, string) *T // by ID; returns nil if not found
	all         func(*state.Snapshot) iter.Seq[*T]
	keyOf       func(*T) (id, namespace string) // namespace is "" if the objects have none
	byNamespace bool                            // all yields objects ordered by namespace first
}

// find returns the visible object with this ID, or the only one with this ID prefix.
// It returns an error if there is none, or more than one.
func (k resource[T]) find(s *state.Snapshot, c *call, id string) (*T, error) {
	if x := k.get(s, id); x != nil {
		if _, namespace := k.keyOf(x); c.canSee(namespace) {
			return x, nil
		}
	}
	return findByPrefix(c, k.name, id, k.all(s), k.keyOf)
}

// resolveID returns the ID of the object that the path names by a prefix, or the
// path's value if there is no such object.
func (k resource[T]) resolveID(c *call) string {
	id := c.r.PathValue("id")
	if x, err := k.find(c.api.cfg.Server.Snapshot(), c, id); err == nil {
		id, _ = k.keyOf(x)
	}
	return id
}

// readOne handles a query for the object that the path names. show returns the
// response and the index of its last change. keys are watched in addition to the
// object, and must cover everything else that show reads.
func readOne[T any](c *call, k resource[T], show func(*state.Snapshot, *T) (result any, changed uint64), keys ...state.Key) (any, error) {
	id := k.resolveID(c)
	return c.read(query{
		keys: append(keys, k.table.Of(id)),
		render: func(s *state.Snapshot) (any, uint64, error) {
			x, err := k.find(s, c, id)
			if err != nil {
				return nil, 0, err
			}
			result, changed := show(s, x)
			return result, changed, nil
		},
	})
}

// readList handles a query for a page of objects: those that match the request, that
// the caller may see and, if include is not nil, for which include returns true.
func readList[T, R any](c *call, k resource[T], include func(*T) bool, show func(*state.Snapshot, *T) R) (any, error) {
	part, err := c.page()
	if err != nil {
		return nil, err
	}
	return c.read(query{
		keys: []state.Key{k.table.All()}, table: k.table, wholeTable: true,
		render: func(s *state.Snapshot) (any, uint64, error) {
			p := pager[R]{page: part}
			for x := range k.all(s) {
				id, namespace := k.keyOf(x)
				if !c.matches(namespace, id) || include != nil && !include(x) {
					continue
				}
				key := pageKey(id)
				if k.byNamespace {
					key = pageKey(namespace, id)
				}
				if !p.add(key, func() R { return show(s, x) }) {
					break
				}
			}
			return p.result(c), 0, nil
		},
	})
}

// minPrefix is the minimum length of an ID prefix.
const minPrefix = 2

// findByPrefix returns the only visible object with an ID prefix. It returns an error if
// there is none, or more than one.
func findByPrefix[T any](c *call, what, prefix string, all iter.Seq[*T], of func(*T) (id, namespace string)) (*T, error) {
	var found []*T
	if len(prefix) >= minPrefix {
		for x := range all {
			id, namespace := of(x)
			if strings.HasPrefix(id, prefix) && c.canSee(namespace) {
				if found = append(found, x); len(found) > 5 {
					break
				}
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		hint := "finished objects are garbage-collected after a while"
		if what == "node" || what == "cluster" { // they are deleted by operators only
			hint = "GET /v1/" + what + "s lists them"
		}
		return nil, rest.NotFound("%s %s not found", what, rest.Quote(prefix)).WithHint("%s", hint)
	}
	ids := make([]string, len(found))
	for i, x := range found {
		ids[i], _ = of(x)
	}
	return nil, rest.Invalid("ambiguous prefix: several %ss begin with %s", what, rest.Quote(prefix)).WithHint("use a longer prefix: %s", strings.Join(ids, ", ")).With("IDs", ids)
}

// page is the requested part of a list.
type page struct {
	from  string // key of the first element; "": start of the list
	limit int    // maximum number of elements; 0: unlimited
}

// maxPage is the maximum size of a page.
const maxPage = 10_000

func (c *call) page() (page, error) {
	n, err := queryNumber(c, "per_page")
	if err != nil {
		return page{}, err
	}
	token := c.r.URL.Query().Get("next_token")
	from, ok := parsePageToken(token)
	if !ok {
		return page{}, rest.Invalid("invalid next_token=%s: it must be a token that a list returned", rest.Quote(token)).With("Parameter", "next_token")
	}
	return page{from: from, limit: int(min(n, maxPage))}, nil
}

// pageTokenPrefix is the first byte of a decoded page token. Most other texts do not
// have it.
const pageTokenPrefix = "\x01"

func pageToken(key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(pageTokenPrefix + key))
}

// parsePageToken returns the key in a page token, and false if the token was not
// created by pageToken.
func parsePageToken(token string) (key string, ok bool) {
	if token == "" {
		return "", true
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", false
	}
	return strings.CutPrefix(string(text), pageTokenPrefix)
}

// pageKey returns the sort key of an element that is ordered by parts. The separator
// sorts before every byte that IDs may contain.
func pageKey(parts ...string) string { return strings.Join(parts, "\x00") }

// A pager collects one page of elements that arrive in ascending order of their keys.
type pager[T any] struct {
	page
	list []T
	next string
}

// add appends an element if it belongs to the page, and reports whether further
// elements may be added.
func (p *pager[T]) add(key string, make func() T) bool {
	if key < p.from {
		return true
	}
	if p.limit > 0 && len(p.list) == p.limit {
		p.next = key
		return false
	}
	p.list = append(p.list, make())
	return true
}

// result returns the list, which is never nil, and sets the header with the token of
// the next page.
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
