package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/hashicorp/raft"
)

// ReadServerID returns the stored server ID, or "" if the file does not exist.
func ReadServerID(layout Layout) (string, error) {
	b, err := os.ReadFile(layout.NodeID())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}

// ServerIDRemedy returns the remedy for a missing server ID. It lists the given members,
// the candidates for the ID, or refers to the command that does.
func ServerIDRemedy(members []raft.Server) string {
	text := "write this server's ID in the cluster into that file"
	if len(members) == 0 {
		return text + "; run `cede server members` on another server to list IDs"
	}
	text += "; the last known members are"
	for i, m := range members {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s at %s", m.ID, m.Address)
	}
	return text
}
