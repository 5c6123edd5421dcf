package operator

import "testing"

func TestPeerAddress(t *testing.T) {
	for address, good := range map[string]bool{"nonsense": false, "": false, ":4647": false, "h:0": false, "h:x": false, "10.0.0.1:4647": true, "[::1]:4647": true} {
		if err := peerAddress(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
}
