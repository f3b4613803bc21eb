package config

import (
	"errors"
	"regexp"
	"strings"
)

// AdapterRef says what translates for a provider.
type AdapterRef struct {
	Kind AdapterKind
	Name string // of the native adapter, or of the plugin
}

// AdapterKind is where an adapter comes from.
type AdapterKind string

// The kinds of adapters. "openai" alone is short for native:openai.
const (
	AdapterNative AdapterKind = "native"
	AdapterPlugin AdapterKind = "plugin"
)

const adapterPattern = `^(openai|(plugin|native):[A-Za-z0-9][A-Za-z0-9._-]{0,127})$`

var adapterForm = regexp.MustCompile(adapterPattern)

// String writes the reference as in the file.
func (a AdapterRef) String() string {
	if a.Kind == AdapterNative && a.Name == "openai" {
		return a.Name
	}
	return string(a.Kind) + ":" + a.Name
}

func (a *AdapterRef) parse(text string) error {
	if !adapterForm.MatchString(text) {
		return errors.New("allowed are openai, plugin:NAME and native:NAME")
	}
	kind, name, ok := strings.Cut(text, ":")
	if !ok {
		kind, name = string(AdapterNative), text
	}
	*a = AdapterRef{Kind: AdapterKind(kind), Name: name}
	return nil
}

// Auth says how a credential is presented.
type Auth struct {
	Kind AuthKind
	Name string // of the header or the query parameter
}

// AuthKind is a way to present a credential.
type AuthKind string

// The ways. AuthGCP and AuthAzure are not in force yet.
const (
	AuthBearer AuthKind = "bearer"
	AuthHeader AuthKind = "header"
	AuthQuery  AuthKind = "query"
	AuthAWS    AuthKind = "aws_sigv4"
	AuthGCP    AuthKind = "gcp"
	AuthAzure  AuthKind = "azure_ad"
	AuthNone   AuthKind = "none"
)

const authPattern = `^(bearer|aws_sigv4|gcp|azure_ad|none|header:[A-Za-z0-9!#$%&'*+.^_|~-]{1,128}|query:[A-Za-z0-9._~-]{1,128})$`

var authForm = regexp.MustCompile(authPattern)

// String writes it as in the file.
func (a Auth) String() string {
	if a.Name == "" {
		return string(a.Kind)
	}
	return string(a.Kind) + ":" + a.Name
}

// Soon says whether this way of signing is still to be built.
func (a Auth) Soon() bool { return a.Kind == AuthGCP || a.Kind == AuthAzure }

func (a *Auth) parse(text string) error {
	if !authForm.MatchString(text) {
		return errors.New("allowed are bearer, header:NAME, query:NAME, aws_sigv4, gcp, azure_ad and none")
	}
	kind, name, _ := strings.Cut(text, ":")
	*a = Auth{Kind: AuthKind(kind), Name: name}
	return nil
}
