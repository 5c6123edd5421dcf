//go:build !wasip1

package policypb

// The handshake of go-plugin. If a policy is not started by a host, it prints a message and exits.
const (
	CookieKey   = "CEDE_POLICY"
	CookieValue = "v1"
	// Protocol is the version of the handshake and of this service; the version
	// of the frames travels in each Answer.
	Protocol = 1
	// Name is the name of the plugin in its plugin set.
	Name = "policy"
)

// MaxMessage is the maximum message size in bytes, in either direction. It is far
// larger than a frame of 4,096 rows, and small enough to bound memory.
const MaxMessage = 64 << 20

// Window is the flow control window in bytes. It is as large as a large frame, so
// that a call is one burst in each direction.
const Window = 8 << 20
