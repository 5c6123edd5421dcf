package gossip

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/memberlist"
)

// Tags are what a member says of itself. They travel with every mention of it,
// so there is room for addresses and numbers alone: at most MaxTags bytes.
type Tags struct {
	Name       string `json:"m,omitempty"` // that people gave it; need not be unique
	ClusterID  string `json:"c,omitempty"` // of the state it holds; "" while it holds none
	Region     string `json:"g,omitempty"`
	Datacenter string `json:"d,omitempty"`
	Raft       string `json:"r,omitempty"` // host:port of Raft
	RPC        string `json:"p,omitempty"` // host:port of calls between servers
	HTTP       string `json:"h,omitempty"` // URL of the API
	Build      string `json:"b,omitempty"` // version of the binary
	Oldest     uint32 `json:"o,omitempty"` // meanings of log entries that it understands: from
	Newest     uint32 `json:"n,omitempty"` // to
	Expect     int    `json:"e,omitempty"` // servers that it waits for before the first election; 0: none
	NonVoter   bool   `json:"v,omitempty"` // follows, and never votes
	Leaving    bool   `json:"l,omitempty"` // set by Leave: what looks like a failure next is none
}

// MaxTags is how long encoded Tags may be, in bytes.
const MaxTags = memberlist.MetaMaxSize

func (t *Tags) encode() ([]byte, error) {
	b, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	if len(b) > MaxTags {
		return nil, fmt.Errorf("what this member says of itself takes %d bytes, and gossip carries %d: shorten its name, addresses, region or datacenter", len(b), MaxTags)
	}
	return b, nil
}

func decodeTags(b []byte) (t Tags, err error) {
	if err := json.Unmarshal(b, &t); err != nil {
		return Tags{}, fmt.Errorf("its tags cannot be read, as if it were another program: %w", err)
	}
	return t, nil
}

// Status is what the pool thinks of a member.
type Status uint8

// The states of a member.
const (
	Alive  Status = iota
	Failed        // it does not answer, or said that it stops
	Left          // it said that it leaves
)

func (s Status) String() string { return [...]string{"alive", "failed", "left"}[s] }

// Member is a server of the pool.
type Member struct {
	ID     string // unique; no address, and kept when it moves
	Addr   string // host:port that it gossips at
	Tags   Tags
	Status Status
	Since  time.Time // when it got this status, as this member saw it
}

func memberOf(n *memberlist.Node) (Member, error) {
	tags, err := decodeTags(n.Meta)
	return Member{ID: n.Name, Addr: net.JoinHostPort(n.Addr.String(), strconv.Itoa(int(n.Port))), Tags: tags}, err
}

// Event is a change of one member.
type Event struct {
	Member Member // as it is now
	Before Status // equal to Member.Status when its address or tags changed
	New    bool   // it was not known
}
