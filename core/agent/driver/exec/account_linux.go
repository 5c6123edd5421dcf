package exec

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"

	"github.com/cede-scheduler/cede/core/agent/driver"
)

// account returns the account that a task runs as. It returns nil for the user of the
// agent.
func (d *Driver) account(s *driver.Spec) (*account, error) {
	name := cmp.Or(s.User, d.o.User)
	if name == "" && d.uids != nil {
		uid, err := d.uids.of(s.Namespace)
		return &account{UID: uid, GID: uid}, err
	}
	self := currentUser()
	u := self
	if name != "" && name != self.Username {
		var err error
		if u, err = user.Lookup(name); err != nil {
			return nil, fmt.Errorf("exec: user of task: %w", err)
		}
	}
	if err := d.checkDenied(u); err != nil {
		return nil, err
	}
	if u.Uid == self.Uid {
		return nil, nil
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("exec: cannot run task as %s: the agent runs as %s, and only root may change the user", name, self.Username)
	}
	return accountOf(u)
}

// currentUser returns the user of the agent. Without an entry in the user database it has
// only an ID.
func currentUser() *user.User {
	if u, err := user.Current(); err == nil {
		return u
	}
	return &user.User{Uid: strconv.Itoa(os.Geteuid())}
}

// checkDenied returns an error if the user has the ID or the name of a denied one. Several
// names can have one ID, and the kernel grants access by ID. An entry that is a number
// denies that ID, and the user with that name if there is one.
func (d *Driver) checkDenied(u *user.User) error {
	const remedy = "set the user of the task, or change client.drivers.exec.denied_users"
	for _, denied := range d.o.Denied {
		if denied == u.Username {
			return fmt.Errorf("exec: user %s is denied: %s", u.Username, remedy)
		}
		id, err := idOf(denied, user.Lookup)
		if err != nil {
			return fmt.Errorf("exec: cannot check whether user %s is denied: %w", u.Username, err)
		}
		if isSameID(denied, u.Uid) || isSameID(id, u.Uid) {
			return fmt.Errorf("exec: user %s is denied: it has the ID %s of user %s: %s", u.Username, u.Uid, denied, remedy)
		}
	}
	return nil
}

// idOf returns the ID of a user by its name, or "" if there is none. A host without a user
// database, such as a container of one file, has no other name than that of root.
func idOf(name string, lookup func(string) (*user.User, error)) (string, error) {
	u, err := lookup(name)
	switch _, unknown := errors.AsType[user.UnknownUserError](err); {
	case err == nil:
		return u.Uid, nil
	case errors.Is(err, fs.ErrNotExist) && name == "root":
		return "0", nil
	case unknown || errors.Is(err, fs.ErrNotExist):
		return "", nil
	}
	return "", err
}

// isSameID compares user IDs as numbers: /etc/passwd and the configuration may contain "00"
// or "+0". Other texts are not IDs.
func isSameID(a, b string) bool {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	return errX == nil && errY == nil && x == y
}

// accountOf returns the IDs of a user and its groups.
func accountOf(u *user.User) (*account, error) {
	groups, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("exec: groups of user %s: %w", u.Username, err)
	}
	a := &account{}
	for _, id := range append([]string{u.Uid, u.Gid}, groups...) {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("exec: user %s: %w", u.Username, err)
		}
		a.Groups = append(a.Groups, uint32(n))
	}
	a.UID, a.GID, a.Groups = a.Groups[0], a.Groups[1], a.Groups[2:]
	return a, nil
}
