//go:build !wasip1

package policypb

// The handshake of go-plugin: a policy that is started by anything but a host
// of policies says so and ends.
const (
	CookieKey   = "CEDE_POLICY"
	CookieValue = "v1"
	// Protocol is the version of the handshake and of this service; the version
	// of the frames travels in each Answer.
	Protocol = 1
	// Name is what the plugin is called in its set.
	Name = "policy"
)

// MaxMessage is how large a message may be, in either direction: far more than
// a frame of 4,096 rows, far less than what hurts.
const MaxMessage = 64 << 20

// Window is how much may be under way before the other side has read it. As
// large as a large frame, so that a call is one burst each way.
const Window = 8 << 20
