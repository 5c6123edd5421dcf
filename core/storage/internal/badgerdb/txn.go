package badgerdb

import (
	"errors"

	"github.com/dgraph-io/badger/v4"
)

// get reads one value; nil when there is none.
func Get(txn *badger.Txn, key []byte) ([]byte, error) {
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return item.ValueCopy(nil)
}

// view reads.
func View(db *badger.DB, f func(*badger.Txn) error) error {
	return Guard(func() error {
		txn := db.NewTransaction(false)
		defer txn.Discard()
		return f(txn)
	})
}

// update writes what f puts into one transaction.
func Update(db *badger.DB, f func(*badger.Txn) error) error {
	return Guard(func() error {
		txn := db.NewTransaction(true)
		defer txn.Discard()
		if err := f(txn); err != nil {
			return err
		}
		return txn.Commit()
	})
}

func DeleteKeys(db *badger.DB, keys [][]byte) error {
	const most = 4096
	for len(keys) > 0 {
		part := keys[:min(len(keys), most)]
		err := Update(db, func(txn *badger.Txn) error {
			for _, k := range part {
				if err := txn.Delete(k); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		keys = keys[len(part):]
	}
	return nil
}

// walk gives the keys with a prefix, without values, until f says false.
func WalkKeys(txn *badger.Txn, prefix []byte, f func(*badger.Item) bool) {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if !f(it.Item()) {
			return
		}
	}
}
