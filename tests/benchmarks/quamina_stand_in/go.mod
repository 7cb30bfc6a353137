module quamina.net/go/quamina

go 1.21
