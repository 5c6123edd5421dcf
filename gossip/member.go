package gossip

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/memberlist"
)

// Tags are the properties that a member publishes. They are part of every message about the
// member, so their encoding is limited to MaxTags bytes.
type Tags struct {
	Name       string `json:"m,omitempty"` // display name; need not be unique
	ClusterID  string `json:"c,omitempty"` // of the state it holds; "" if it holds none
	Region     string `json:"g,omitempty"`
	Datacenter string `json:"d,omitempty"`
	Raft       string `json:"r,omitempty"` // host:port of Raft
	RPC        string `json:"p,omitempty"` // host:port of RPC between servers
	HTTP       string `json:"h,omitempty"` // URL of the API
	Build      string `json:"b,omitempty"` // version of the binary
	Oldest     uint32 `json:"o,omitempty"` // lowest supported version of log entries
	Newest     uint32 `json:"n,omitempty"` // highest supported version of log entries
	Expect     int    `json:"e,omitempty"` // bootstrap_expect: servers to wait for before the first election; 0: none
	NonVoter   bool   `json:"v,omitempty"` // replicates and never votes
	Leaving    bool   `json:"l,omitempty"` // set by Leave: the failure that follows is a departure
}

// MaxTags is the maximum length of encoded Tags in bytes.
const MaxTags = memberlist.MetaMaxSize

func (t *Tags) encode() ([]byte, error) {
	b, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	if len(b) > MaxTags {
		return nil, fmt.Errorf("tags take %d bytes, and gossip carries %d: shorten name, addresses, region or datacenter", len(b), MaxTags)
	}
	return b, nil
}

func decodeTags(b []byte) (t Tags, err error) {
	if err := json.Unmarshal(b, &t); err != nil {
		return Tags{}, fmt.Errorf("cannot decode tags: %w", err)
	}
	return t, nil
}

// Status is the state of a member as seen by the pool.
type Status uint8

// Member states.
const (
	Alive  Status = iota
	Failed        // does not respond, or announced that it stops
	Left          // announced that it leaves
)

func (s Status) String() string { return [...]string{"alive", "failed", "left"}[s] }

// A Member is a server in the pool.
type Member struct {
	ID     string // unique; independent of the address
	Addr   string // gossip address, host:port
	Tags   Tags
	Status Status
	Since  time.Time // time of the last change of Status, as seen by this member
}

func memberOf(n *memberlist.Node) (Member, error) {
	tags, err := decodeTags(n.Meta)
	return Member{ID: n.Name, Addr: net.JoinHostPort(n.Addr.String(), strconv.Itoa(int(n.Port))), Tags: tags}, err
}

// An Event is a change of one member.
type Event struct {
	Member Member // new state
	Before Status // equal to Member.Status if its address or tags changed
	New    bool   // the member was not known before
}
