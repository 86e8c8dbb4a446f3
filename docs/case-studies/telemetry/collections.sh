# The policy, the five collections, and the API key of the reverse proxy that installations send to.
set -e
ldp-budget policy set default --limit lifetime=12 --quiet
add() { ldp-budget collection add "$@" --quiet | tail -n 1; }
add database d-bit-flip --epsilon 1 --buckets 5 --bits 5 --memoize --categories sqlite,postgresql,mysql,mariadb,other
add users d-bit-flip --epsilon 1 --buckets 6 --bits 6 --memoize --categories 'to 5,to 20,to 100,to 500,to 2000,more'
add version d-bit-flip --epsilon 1 --buckets 5 --bits 5 --memoize --categories 4.0,4.1,4.2,4.3,older
add features ticks --epsilon 1 --categories ldap,s3,webhooks,scim,search,themes
add importer randomized-response --epsilon 1 --categories no,yes
bound=$(printf -- '--collection %s ' database users version features importer)
ldp-budget api-key create installations --scope collect $bound --quiet > api-key
