package api

import (
	"encoding/base64"
	"iter"
	"strings"

	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/state"
)

// resource is how the things of one table are found and listed.
type resource[T any] struct {
	name  string // in messages
	table state.Table
	get   func(*state.Snapshot, string) *T // by id; nil: there is none
	all   func(*state.Snapshot) iter.Seq[*T]
	of    func(*T) (id, namespace string) // namespace "": they are in none
	under bool                            // all yields them by namespace first
}

// find finds a thing by its id or a prefix of it.
func (k resource[T]) find(s *state.Snapshot, c *call, id string) (*T, error) {
	if x := k.get(s, id); x != nil {
		if _, namespace := k.of(x); c.canSee(namespace) {
			return x, nil
		}
	}
	return findByPrefix(c, k.name, id, k.all(s), k.of)
}

// resolveID is the id of the thing that the path names by a prefix of it; what the
// path says, where there is no such thing.
func (k resource[T]) resolveID(c *call) string {
	id := c.r.PathValue("id")
	if x, err := k.find(c.api.cfg.Server.Snapshot(), c, id); err == nil {
		id, _ = k.of(x)
	}
	return id
}

// readOne answers a query for the thing that the path names. show tells it, and when
// it changed; what else that is made of, the keys watch.
func readOne[T any](c *call, k resource[T], show func(*state.Snapshot, *T) (answer any, changed uint64), keys ...state.Key) (any, error) {
	id := k.resolveID(c)
	return c.read(query{
		keys: append(keys, k.table.Of(id)),
		render: func(s *state.Snapshot) (any, uint64, error) {
			x, err := k.find(s, c, id)
			if err != nil {
				return nil, 0, err
			}
			answer, changed := show(s, x)
			return answer, changed, nil
		},
	})
}

// readList answers a query for the things of a kind, a page of them: those that the
// caller asks for and may see, and that keep, where it is given, keeps.
func readList[T, R any](c *call, k resource[T], keep func(*T) bool, show func(*state.Snapshot, *T) R) (any, error) {
	part, err := c.page()
	if err != nil {
		return nil, err
	}
	return c.read(query{
		keys: []state.Key{k.table.All()}, table: k.table, wholeTable: true,
		render: func(s *state.Snapshot) (any, uint64, error) {
			p := pager[R]{page: part}
			for x := range k.all(s) {
				id, namespace := k.of(x)
				if !c.matches(namespace, id) || keep != nil && !keep(x) {
					continue
				}
				key := pageKey(id)
				if k.under {
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

// minPrefix is how much of an id must be given.
const minPrefix = 2

// findByPrefix is the one thing whose id begins with a prefix.
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
		return nil, rest.NotFound("%s %s not found", what, rest.Quote(prefix)).WithHint("finished objects are garbage-collected after a while")
	}
	ids := make([]string, len(found))
	for i, x := range found {
		ids[i], _ = of(x)
	}
	return nil, rest.Invalid("ambiguous prefix: several %ss begin with %s", what, rest.Quote(prefix)).WithHint("use a longer prefix: %s", strings.Join(ids, ", ")).With("IDs", ids)
}

// page is which part of a list is asked for.
type page struct {
	from  string // key of the first element; "": the first
	limit int    // 0: all
}

// maxPage is how much is listed at most where pages are asked for.
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

// pageTokenPrefix begins what tokens hold: other text is mostly no token of ours.
const pageTokenPrefix = "\x01"

func pageToken(key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(pageTokenPrefix + key))
}

// parsePageToken is the key that a token was made of; false: it was not made here.
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
	if p.limit > 0 && len(p.list) == p.limit {
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
