package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/hashicorp/raft"
)

// readID reads the server's id; "" where there is none.
func ReadServerID(layout Layout) (string, error) {
	b, err := os.ReadFile(layout.NodeID())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}

func ServerIDRemedy(members []raft.Server) string {
	text := "write the id that the cluster knows this server by into that file"
	if len(members) == 0 {
		return text + ": cede server members, on another server, lists ids"
	}
	text += "; the servers that its log names are"
	for i, m := range members {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s at %s", m.ID, m.Address)
	}
	return text
}
