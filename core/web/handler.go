package web

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var embedded embed.FS

// Prefix is the path below which the console is served.
const Prefix = "/ui/"

// policy allows only what the page itself loads from its server: no inline code, no other
// origin, and no page that embeds it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// An asset is a file with the validator of its content.
type asset struct {
	content []byte
	kind    string
	tag     string
}

// Handler returns a handler for all paths below Prefix. Paths that are no file are pages of
// the console, so that their addresses can be shared.
func Handler() http.Handler {
	assets := load()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		a, ok := assets[strings.TrimPrefix(r.URL.Path, Prefix)]
		if !ok {
			a = assets["index.html"]
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Content-Type", a.kind)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache") // revalidated by the tag: a server may have been upgraded
		h.Set("Etag", a.tag)
		if r.Header.Get("If-None-Match") == a.tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(a.content) // an error means that the client disconnected
	})
}

func load() map[string]*asset {
	assets := map[string]*asset{}
	files, err := fs.Sub(embedded, "assets")
	if err == nil {
		err = fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			content, err := fs.ReadFile(files, name)
			sum := sha256.Sum256(content)
			assets[name] = &asset{
				content: content, kind: mime.TypeByExtension(path.Ext(name)),
				tag: `"` + base64.RawURLEncoding.EncodeToString(sum[:]) + `"`,
			}
			return err
		})
	}
	if err != nil {
		panic("embedded files of the console: " + err.Error()) // they are part of the program
	}
	return assets
}
