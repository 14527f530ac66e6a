// certs DIR: writes the key material one cluster on loopback needs, with the standard library only.
//
// ca, server (loopback names), admin (system:masters), front-proxy-client and the service-account
// key pair sa.key/sa.pub. Files that exist are kept, so a cluster can be stopped and started again.
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// names are what clients on loopback and in-cluster lookups may call the server.
var names = []string{
	"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
	"kubernetes.default.svc.cluster.local",
	"*.karmada-system.svc", "*.karmada-system.svc.cluster.local",
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: certs DIR")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "certs:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "sa.pub")); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca := template(pkix.Name{CommonName: "peer-ca"})
	ca.IsCA, ca.BasicConstraintsValid = true, true
	ca.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	if err := issue(dir, "ca", ca, ca, caKey, caKey); err != nil {
		return err
	}
	server := template(pkix.Name{CommonName: "kube-apiserver"})
	server.DNSNames = names
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.IPv4(10, 96, 0, 1)}
	leaves := map[string]*x509.Certificate{
		"server":             server,
		"admin":              template(pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}),
		"front-proxy-client": template(pkix.Name{CommonName: "front-proxy-client"}),
	}
	for name, leaf := range leaves {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		leaf.KeyUsage = x509.KeyUsageDigitalSignature
		leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
		if err := issue(dir, name, leaf, ca, key, caKey); err != nil {
			return err
		}
	}
	return serviceAccountKey(dir)
}

func template(subject pkix.Name) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // the system's random source failed
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(1, 0, 0),
	}
}

func issue(dir, name string, leaf, parent *x509.Certificate, key, signer crypto.Signer) error {
	der, err := x509.CreateCertificate(rand.Reader, leaf, parent, key.Public(), signer)
	if err != nil {
		return err
	}
	if err := write(dir, name+".crt", "CERTIFICATE", der); err != nil {
		return err
	}
	return writeKey(dir, name+".key", key)
}

// serviceAccountKey makes an RSA pair, the kind every verifier of tokens accepts.
func serviceAccountKey(dir string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	if err := write(dir, "sa.key", "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)); err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return write(dir, "sa.pub", "PUBLIC KEY", der)
}

func writeKey(dir, name string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return write(dir, name, "PRIVATE KEY", der)
}

func write(dir, name, kind string, der []byte) error {
	data := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	return os.WriteFile(filepath.Join(dir, name), data, 0o600)
}
