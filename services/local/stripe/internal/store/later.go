package store

import (
	"encoding/binary"
	"encoding/json"
	"time"

	"holdfast.dev/services/local/stripe/internal/domain"
)

// Task is a scheduled action.
type Task struct {
	Do     string       `json:"do"`
	Scope  domain.Scope `json:"scope"`
	Object string       `json:"object"`

	key []byte
}

// Schedule stores a task that is due after the delay.
func (t *Tx) Schedule(task Task, delay time.Duration) error {
	text, err := json.Marshal(task)
	if err != nil {
		return err
	}
	due := t.now.Add(delay).UnixMicro()
	k := binary.BigEndian.AppendUint64(nil, uint64(due))
	return t.bucket(taskBucket).Put(append(k, Random(8)...), text)
}

// NextTask returns the task that is due first and its due time; nil if there is none.
func (t *Tx) NextTask() (*Task, time.Time, error) {
	k, text := t.bucket(taskBucket).Cursor().First()
	if k == nil {
		return nil, time.Time{}, nil
	}
	task := &Task{key: append([]byte{}, k...)}
	due := int64(binary.BigEndian.Uint64(k))
	return task, time.UnixMicro(due), json.Unmarshal(text, task)
}

// Finish deletes a task. It returns false if the task was already deleted.
func (t *Tx) Finish(task *Task) (bool, error) {
	if t.bucket(taskBucket).Get(task.key) == nil {
		return false, nil
	}
	return true, t.bucket(taskBucket).Delete(task.key)
}

func deliveryKey(d domain.Delivery) []byte { return []byte(d.Event + "\x00" + d.Endpoint) }

// PutDelivery stores a delivery.
func (t *Tx) PutDelivery(d domain.Delivery) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return t.bucket(deliveryBucket).Put(deliveryKey(d), text)
}

// DeleteDelivery deletes a delivery.
func (t *Tx) DeleteDelivery(d domain.Delivery) error {
	return t.bucket(deliveryBucket).Delete(deliveryKey(d))
}

// Deliveries returns the pending deliveries, the oldest first.
func (t *Tx) Deliveries() ([]domain.Delivery, error) {
	var all []domain.Delivery
	err := t.bucket(deliveryBucket).ForEach(func(_, text []byte) error {
		var d domain.Delivery
		err := json.Unmarshal(text, &d)
		all = append(all, d)
		return err
	})
	return all, err
}
