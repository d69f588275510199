# shellcheck shell=dash
# In-band authentication with DH-HMAC-CHAP decides which hosts may connect to a server that has a
# list of hosts.

# The secret has the right form but is not the host's.
other_secret=$(nvme gen-dhchap-key --hmac=1 --nqn=nqn.2014-08.org.nvmexpress:other)

refused_connect() { # OPTIONS...
    ! nvme connect -t tcp -a "$TCP_ADDRESS" -s "$TCP_PORT" -n "$(drive_nqn)" "$@" && has_no_controller tcp
}

succeeds "disconnect" disconnect_tcp
succeeds "a host without a secret is refused" refused_connect
succeeds "a host with a wrong secret is refused" refused_connect --dhchap-secret="$other_secret"
# shellcheck disable=SC2153  # made by the host
succeeds "a host that is not on the list is refused" refused_connect --hostnqn=nqn.2014-08.org.nvmexpress:other --dhchap-secret="$SECRET"
succeeds "a drive with a wrong secret is refused by the host" \
    refused_connect --dhchap-secret="$SECRET" --dhchap-ctrl-secret="$other_secret"
succeeds "both sides authenticate each other" connect_tcp --dhchap-secret="$SECRET" --dhchap-ctrl-secret="$CONTROLLER_SECRET"
succeeds "every queue is authenticated: it can be read" \
    run_fio "$(multipath_device 1)" --ioengine=io_uring --rw=randread --bs=4k --iodepth=8 --size=512k
