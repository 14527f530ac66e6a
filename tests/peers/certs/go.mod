module atoll.peers/certs

go 1.25.0
