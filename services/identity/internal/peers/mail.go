// Package peers sends mail.
package peers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/wneessen/go-mail"
)

// ErrMailURL reports an invalid MAIL_URL.
var ErrMailURL = errors.New("MAIL_URL must be smtp://user:password@host:587 (STARTTLS), smtps://user:password@host:465 or file:///folder")

// sendTimeout limits the time for sending one message.
const sendTimeout = 20 * time.Second

// Mailer sends messages through an SMTP server, or writes them to a folder if there is none.
type Mailer struct {
	from   string
	folder string
	client *mail.Client
}

// MailAccess contains the destination and the sender of messages.
type MailAccess struct {
	URL  string `env:"MAIL_URL" secret:"true"`                              // smtp://user:password@host:587, smtps://… or file:///folder; empty: links are returned to the inviter
	From string `env:"MAIL_FROM" envDefault:"Holdfast <noreply@localhost>"` // sender of messages
}

// NewMailer creates a mailer for the configured destination: an SMTP server with TLS, or a folder. It returns nil if there is no
// URL.
func NewMailer(access MailAccess) (*Mailer, error) {
	if access.URL == "" {
		return nil, nil //nolint:nilnil // no mail is sent
	}
	u, err := url.Parse(access.URL)
	if err != nil {
		return nil, ErrMailURL // the text of err would show the password
	}
	m := &Mailer{from: access.From}
	switch {
	case u.Scheme == "file" && u.Path != "":
		m.folder = u.Path
		return m, nil
	case u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "":
		return nil, ErrMailURL
	}
	options := []mail.Option{mail.WithTimeout(sendTimeout), mail.WithTLSPortPolicy(mail.TLSMandatory)}
	if u.Scheme == "smtps" {
		options = append(options, mail.WithSSLPort(false))
	}
	if port := u.Port(); port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return nil, ErrMailURL
		}
		options = append(options, mail.WithPort(int(n)))
	}
	if u.User != nil {
		password, _ := u.User.Password()
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(u.User.Username()), mail.WithPassword(password))
	}
	if m.client, err = mail.NewClient(u.Hostname(), options...); err != nil {
		return nil, fmt.Errorf("MAIL_URL: %w", err)
	}
	return m, nil
}

// Send sends a message in plain text, or writes it to the folder as a file that only this user can read.
func (m *Mailer) Send(ctx context.Context, to, subject, text string) error {
	msg := mail.NewMsg()
	if err := msg.From(m.from); err != nil {
		return fmt.Errorf("MAIL_FROM: %w", err)
	}
	if err := msg.To(to); err != nil {
		return fmt.Errorf("mail to %s: %w", to, err)
	}
	msg.Subject(subject)
	msg.SetBodyString(mail.TypeTextPlain, text)
	if m.folder != "" {
		return m.write(msg)
	}
	if err := m.client.DialAndSendWithContext(ctx, msg); err != nil {
		var unreachable *net.OpError
		if errors.As(err, &unreachable) {
			return fmt.Errorf("the mail server cannot be reached: %w", err)
		}
		return fmt.Errorf("the mail server does not take the message: %w", err)
	}
	return nil
}

func (m *Mailer) write(msg *mail.Msg) error {
	if err := os.MkdirAll(m.folder, 0o700); err != nil {
		return fmt.Errorf("folder of mail: %w", err)
	}
	name := time.Now().UTC().Format("20060102-150405.000000") + "-" + rand.Text()[:6] + ".eml"
	f, err := os.OpenFile(filepath.Join(m.folder, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write mail: %w", err)
	}
	_, err = msg.WriteTo(f)
	return errors.Join(err, f.Close())
}
